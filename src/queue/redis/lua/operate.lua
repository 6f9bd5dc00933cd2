-- cancel, change, requeue, purge: operations on messages by id or state.
-- Guarantee: repeated, they change nothing more. Cancel and purge work on a full server.
-- keys: queue. args: now, events, then
--   cancel, requeue: ids | change: id, priority or '', visible at or '', `p` and the payload or '' | purge: state, limit
-- answer: 18 bytes an id: d (done), u (unknown) or t (not in a state for it), the state, version, -1. Purge: how many.
local function describe(letter, r)
  return letter .. pack('>c1dd', r and r[STATE] or '-', r and r[VERSION] or 0, -1)
end

local function byId(c, args, stride, change)
  local ids, answers = {}, {}
  for k = 3, #args, stride do ids[#ids + 1] = args[k] end
  load(c, ids)
  for k = 3, #args, stride do
    local r = c.records[args[k]]
    if not r then
      answers[#answers + 1] = describe('u')
    elseif change(c, r, args[k + 1], args[k + 2], args[k + 3]) then
      answers[#answers + 1] = describe('d', r)
    else
      answers[#answers + 1] = describe('t', r)
    end
  end
  return concat(answers)
end

local function cancelOne(c, r)
  if r[STATE] == 'x' then return true end
  if TERMINAL_KEY[r[STATE]] then return false end
  finish(c, r, 'x', 'x')
  return true
end

local function changeOne(c, r, priorityText, visibleText, payloadText)
  local from = r[STATE]
  if from ~= 'p' and from ~= 'i' then return false end
  local body = bodyOf(c, r[KEY])
  local priority = tonumber(priorityText) or r[PRIORITY]
  local visibleAt = tonumber(visibleText) or r[VISIBLE_AT]
  local payload = payloadText ~= '' and sub(payloadText, 2) or nil
  local state = visibleAt > c.now and 'i' or 'p'
  if payload == nil or payload == payloadOf(body) then
    if priority == r[PRIORITY] and visibleAt == r[VISIBLE_AT] and state == from then return true end
  else
    c.bodies[r[KEY]] = sub(body, 1, find(body, '\n', BODY_SIZE + 1, true)) .. payload
    c.dirty[r[KEY]] = 'body'
  end
  displace(c, r)
  r[STATE], r[PRIORITY], r[VISIBLE_AT] = state, priority, visibleAt
  moved(c, r, from)
  return true
end

local function requeueOne(c, r)
  if r[STATE] ~= 'e' then return false end
  displace(c, r)
  r[STATE], r[ENDED], r[ATTEMPTS], r[VISIBLE_AT], r[FINISHED_AT], r[TOKEN] = 'p', '-', 0, c.now, -1, ''
  setText(r, false)
  moved(c, r, 'e')
  return true
end

-- One bounded step: the first `limit` messages of a state are forgotten, id and token.
local function purgeSome(c, args)
  local state, limit = args[3], tonumber(args[4])
  local suffix = TERMINAL_KEY[state] or ':' .. state
  local members = call('ZRANGE', c.base .. suffix, 0, limit - 1)
  local keys = {}
  for k = 1, #members do keys[k] = sub(members[k], state == 'p' and WAITING_KEY_AT or PLAIN_KEY_AT) end
  load(c, keys)
  for k = 1, #keys do
    if c.records[keys[k]] then
      displace(c, c.records[keys[k]])
      forget(c, keys[k])
    end
    put(c, suffix, members[k], false)
  end
  return #keys
end

local function operation(name, flags, run)
  register(name, flags, function(keys, args)
    local c = open(keys[2], args)
    return reply(c, 0, run(c, args))
  end)
end
operation('cancel', { 'allow-oom' }, function(c, args) return byId(c, args, 1, cancelOne) end)
operation('change', {}, function(c, args) return byId(c, args, 4, changeOne) end)
operation('requeue', {}, function(c, args) return byId(c, args, 1, requeueOne) end)
operation('purge', { 'allow-oom' }, purgeSome)
