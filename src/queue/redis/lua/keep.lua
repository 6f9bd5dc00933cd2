-- housekeep: one bounded step of one queue: what is due moves, what is past its retention is collected. Works on a full
-- server. keys: queue. args: now, events. answer: how many moved; again: 1 there is more.
local COLLECT_MAX = 500

local function housekeep(keys, args)
  local c = open(keys[2], args)
  local swept, more = sweep(c, SWEEP_MAX)
  local members = call('ZRANGE', c.base .. ':x', '-inf', format('%d', c.now), 'BYSCORE', 'LIMIT', 0, COLLECT_MAX)
  local gone = {}
  for k = 1, #members do gone[k] = sub(members[k], PLAIN_KEY_AT) end
  local states = readMany(c.base .. ':s', gone)
  for k = 1, #gone do
    if states[k] then
      c.records[gone[k]] = recordOfState(gone[k], states[k])
      collect(c, c.records[gone[k]])
    else
      put(c, ':x', members[k], false)
      damage(c, gone[k])
    end
  end
  return reply(c, (more or #members == COLLECT_MAX) and 1 or 0, swept + #members)
end
register('housekeep', { 'allow-oom' }, housekeep)

-- configure: sets a queue's configuration if it is still what the caller has read.
-- keys: queue. args: the JSON that was read ('' for none), the new JSON, the same packed (context.lua), 1 when the type changes.
-- answer: 0 done, 1 it has changed meanwhile, 2 the queue holds messages and its type cannot change.
local function configure(keys, args)
  local base = keys[2]
  if (call('HGET', base .. ':q', 'json') or '') ~= args[1] then return 1 end
  if args[4] == '1' then
    for _, suffix in ipairs({ ':i', ':p', ':r' }) do
      if call('ZCARD', base .. suffix) > 0 then return 2 end
    end
  end
  call('HSET', base .. ':q', 'json', args[2], 'fast', args[3])
  call('PUBLISH', base .. ':hint', '')
  return 0
end
register('configure', {}, configure)

-- set_recurring: writes a recurring message if it is still what the caller has read.
-- keys: the hash of recurring messages. args: name, JSON that was read ('' for none), JSON to write ('' to remove).
-- answer: 1 done, 0 it has changed meanwhile.
local function setRecurring(keys, args)
  if (call('HGET', keys[1], args[1]) or '') ~= args[2] then return 0 end
  if args[3] == '' then call('HDEL', keys[1], args[1]) else call('HSET', keys[1], args[1], args[3]) end
  return 1
end
register('set_recurring', {}, setRecurring)
