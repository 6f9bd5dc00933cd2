-- housekeep: one bounded step of one queue: what is due moves, what is past its retention is collected. Works on a full
-- server. keys: queue. args: now, events. answer: how many moved; again: 1 there is more.
local COLLECT_MAX = 500
local COLLECT_STEP = 20

-- Record keys whose time has come, and the members of x that name them.
local function expiredKeys(c)
  local keys, members = {}, {}
  while #keys < COLLECT_MAX do
    local found = call('ZRANGE', c.names[':x'], '-inf', format('%d', c.now), 'BYSCORE', 'LIMIT', #members, COLLECT_STEP)
    for k = 1, #found do
      if #keys >= COLLECT_MAX then return keys, members, true end
      members[#members + 1] = found[k]
      if byte(found[k]) == 115 then
        keys[#keys + 1] = sub(found[k], 2)
      else
        local together = decodeList(sub(found[k], 2))
        for n = 1, #together do keys[#keys + 1] = together[n] end
      end
    end
    if #found < COLLECT_STEP then return keys, members, false end
  end
  return keys, members, true
end

local function housekeep(keys, args)
  local c = open(keys[2], args)
  local swept, more = sweep(c, SWEEP_MAX)
  local gone, members, moreGone = expiredKeys(c)
  local states = readMany(c.names[':s'], gone)
  for k = 1, #gone do
    local r = states[k] and recordOfState(gone[k], states[k])
    if r and TERMINAL_KEY[r[STATE]] and r[EXPIRES_AT] <= c.now and c.records[gone[k]] == nil then
      c.records[gone[k]] = r
      collect(c, r)
    end
  end
  writeMany('ZREM', c.names[':x'], members)
  return reply(c, (more or moreGone) and 1 or 0, swept + #gone)
end
register('housekeep', { 'allow-oom' }, housekeep)

-- configure: sets a queue's configuration if it is still what the caller has read.
-- keys: queue. args: the JSON that was read ('' for none), the new JSON, the same packed (context.lua), 1 when the type changes.
-- answer: 0 done, 1 it has changed meanwhile, 2 the queue holds messages and its type cannot change.
local function configure(keys, args)
  local base = keys[2]
  if (call('HGET', base .. ':q', 'json') or '') ~= args[1] then return 1 end
  if args[4] == '1' then
    if call('ZCARD', base .. ':i') + call('ZCARD', base .. ':p') + runningCount(base .. ':r') > 0 then return 2 end
  end
  call('HSET', base .. ':q', 'json', args[2], 'fast', args[3])
  call('PUBLISH', base .. ':hint', '')
  return 0
end
register('configure', {}, configure)

-- name_queue: puts a queue's name into the set of all. It is taken out first, so that there is a write to wait for although somebody else
-- has put it there: he may not have been confirmed. keys: the set. args: name. answer: 0.
local function nameQueue(keys, args)
  call('SREM', keys[1], args[1])
  call('SADD', keys[1], args[1])
  return 0
end
register('name_queue', {}, nameQueue)

-- set_recurring: writes a recurring message if it is still what the caller has read.
-- keys: the hash of recurring messages. args: name, JSON that was read ('' for none), JSON to write ('' to remove).
-- answer: 1 done, 0 it has changed meanwhile.
local function setRecurring(keys, args)
  if (call('HGET', keys[1], args[1]) or '') ~= args[2] then return 0 end
  if args[3] == '' then call('HDEL', keys[1], args[1]) else call('HSET', keys[1], args[1], args[3]) end
  return 1
end
register('set_recurring', {}, setRecurring)

-- mark: writes what was there before. WAIT and WAITAOF of a connection answer for its last write, so a call that found its work
-- done by another would be answered before that is safe. Works on a full server. keys: queue. answer: 0.
local function mark(keys)
  call('HSET', keys[1], 'mark', '')
  return 0
end
register('mark', { 'allow-oom' }, mark)
