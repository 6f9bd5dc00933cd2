-- dequeue: hands out the best messages, each under a lease.
-- Guarantee: what is due or expired is looked at first; a repeat of a request gives those of its leases that still run; at
-- most one running message of an exclusivity value; in order of (priority, number). Walks at most WALK_MAX messages: when
-- nothing was found in them, the answer is where to go on.
-- keys: queue. args: now, events, count, lease ms or '', token (request id, dot, random; each
-- message's has its number behind), 1 to go on although more is due,
-- cursor (score, member; empty at the start), then the pairs of the filter: key, value, …
-- answer: id, body and state record of each message. again: 1 more is due, first; 2 go on at the cursor that is the answer.
local SWEEP_MAX = 250
local WALK_MAX = 1000

local function appendRecord(c, answer, key)
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3] = key, c.bodies[key], packed(c.records[key])
end

-- The leases of a request that still run.
local function replay(c, request)
  local before = call('HGET', c.names[':t'], request)
  if not before then return nil end
  local ids = byte(before) == 49 and { sub(before, 2) } or decodeList(sub(before, 2))
  load(c, ids)
  local answer = {}
  for k = 1, #ids do
    local r = c.records[ids[k]]
    if r and r[STATE] == 'r' and match(r[TOKEN], '^[^.]*') == request and bodyOf(c, ids[k]) then
      appendRecord(c, answer, ids[k])
    end
  end
  return #answer > 0 and answer or nil
end

-- How many more the rate limit lets through now. Grants are `at, count` pairs; past GRANTS_MAX they are joined into the
-- last one, which only makes the limit stricter.
local GRANTS_MAX = 128
local function allowance(c)
  if c.cfg.rateCount == 0 then return huge end
  local stored = call('HGET', c.names[':q'], 'grants')
  local grants, kept, sum = stored and decodeList(stored) or {}, {}, 0
  for k = 1, #grants, 2 do
    if grants[k] > c.now - c.cfg.ratePerMs then
      kept[#kept + 1] = grants[k]
      kept[#kept + 1] = grants[k + 1]
      sum = sum + grants[k + 1]
    end
  end
  c.grants = kept
  return c.cfg.rateCount - sum
end

local function grant(c, taken)
  if c.cfg.rateCount == 0 then return end
  local n = #c.grants
  if n >= 2 * GRANTS_MAX then
    c.grants[n - 1], c.grants[n] = c.now, c.grants[n] + taken
  else
    c.grants[n + 1], c.grants[n + 2] = c.now, taken
  end
  call('HSET', c.names[':q'], 'grants', encodeList(c.grants))
end

-- Where a walk of a sorted set goes on: behind the cursor's member, or, when that has left, with its equals.
local function rankAfter(key, score, member)
  if score == '' then return 0 end
  local rank = call('ZRANK', key, member)
  return rank and rank + 1 or call('ZCOUNT', key, '-inf', '(' .. score)
end

local function rarest(c, args, from)
  local best, size
  for k = from, #args, 2 do
    local suffix = ':k:' .. args[k] .. '\0' .. args[k + 1]
    local n = call('ZCARD', c.base .. suffix)
    if not size or n < size then best, size = suffix, n end
  end
  return best, size
end

local function matches(c, r, args, from)
  local metadata = metadataOf(c, r)
  for k = from, #args, 2 do
    local has = false
    for j = 1, metadata and #metadata or 0, 2 do
      if metadata[j] == args[k] and metadata[j + 1] == args[k + 1] then has = true end
    end
    if not has then return false end
  end
  return true
end

-- The values of `keys` of which a message runs, as a set.
local function busyValues(c, keys)
  local values, busy = {}, {}
  for k = 1, #keys do
    local r = c.records[keys[k]]
    local value = r and valueOf(c, r)
    if value then values[#values + 1] = value end
  end
  local entries = readMany(c.names[':v'], values)
  for k = 1, #values do
    if entries[k] and byte(entries[k]) == 114 then busy[values[k]] = 'running' end
  end
  return busy
end

local function keysOf(c, suffix, members, at)
  local keys = {}
  for k = 1, #members do keys[k] = sub(members[k], at) end
  load(c, keys)
  for k = 1, #keys do
    if not c.records[keys[k]] then
      put(c, suffix, members[k], false)
      damage(c, keys[k])
    end
  end
  return keys
end

-- A message whose value is busy would be in the way of every dequeue by this filter until then: it is set aside.
local function setAside(c, suffix, r, value)
  local pair, member = sub(suffix, 4), waitingMember(r)
  put(c, suffix, member, false)
  put(c, asideOf(pair, value), member, r[PRIORITY])
  call('SADD', c.base .. ':a:' .. value, pair)
end

-- The best of a filter: walks the index of its rarest pair. Answers keys, or nil and where to go on.
local function choose(c, wanted, args, score, member)
  local suffix, size = rarest(c, args, 9)
  local key, chosen, walked = c.base .. suffix, {}, 0
  if size == 0 then return chosen end
  local rank = rankAfter(key, score, member)
  local step = #args == 10 and not c.cfg.exclusiveKey and wanted or 100
  while #chosen < wanted and walked < WALK_MAX do
    local members = call('ZRANGE', key, rank, rank + step - 1)
    local keys = keysOf(c, suffix, members, WAITING_KEY_AT)
    local busy = c.cfg.exclusiveKey and busyValues(c, keys) or NONE
    for k = 1, #keys do
      local r = c.records[keys[k]]
      local value = r and valueOf(c, r)
      if value and busy[value] == 'running' then setAside(c, suffix, r, value) end
      if r and #chosen < wanted and not (value and busy[value]) and matches(c, r, args, 9) then
        chosen[#chosen + 1] = keys[k]
        if value then busy[value] = 'chosen' end
      end
    end
    walked, rank = walked + #members, rank + #members
    member = members[#members] or member
    if #members < step then return chosen end
  end
  if #chosen > 0 then return chosen end
  return nil, { tostring(call('ZSCORE', key, member)), member }
end

-- The heads of the idle values.
local function bestOfValues(c, wanted)
  return keysOf(c, ':h', call('ZRANGE', c.names[':h'], 0, wanted - 1), WAITING_KEY_AT)
end

local function leaseEnd(c, ownMs, askedMs)
  return c.now + (askedMs or (ownMs >= 0 and ownMs) or c.cfg.leaseMs)
end

local function tokenOf(token, seq)
  return token .. format('.%d.%d', unpackFields('>I4I4', seq))
end

local function leaseOne(c, r, askedMs, token, requestSize)
  displace(c, r)
  r[STATE] = 'r'
  r[ENDED] = '-'
  r[ATTEMPTS] = r[ATTEMPTS] + 1
  r[LEASE_UNTIL] = leaseEnd(c, r[LEASE_MS], askedMs)
  r[STARTED_AT] = c.now
  r[TOKEN] = tokenOf(token, r[SEQ])
  r[REQUEST_SIZE] = requestSize
  moved(c, r, 'p')
end

-- Which request was given what, and what the rate limit has let through.
local function given(c, ids, token)
  if #ids == 0 then return end
  local request = requestOf(token)
  if #ids == 1 then
    call('HSET', c.names[':t'], request, '1' .. ids[1])
  else
    call('HSET', c.names[':t'], request, 'n' .. encodeList(ids), request .. '#', #ids)
  end
  grant(c, #ids)
end

local function leaseAll(c, keys, askedMs, token)
  local ids, answer, bodiless = {}, {}, {}
  for k = 1, #keys do
    if c.bodies[keys[k]] == nil then bodiless[#bodiless + 1] = keys[k] end
  end
  local bodies = readMany(c.names[':m'], bodiless)
  for k = 1, #bodiless do c.bodies[bodiless[k]] = bodies[k] end
  for k = 1, #keys do
    if c.records[keys[k]] and c.bodies[keys[k]] then ids[#ids + 1] = keys[k] end
  end
  for k = 1, #ids do
    leaseOne(c, c.records[ids[k]], askedMs, token, #ids)
    appendRecord(c, answer, ids[k])
  end
  given(c, ids, token)
  return answer
end

-- The state record of a message that nobody has touched and that stands in no other index, leased for the first time; its number and
-- the end of the lease. Nothing for any other message.
local function firstLease(c, body, askedMs, token, size)
  local seq, priority, _, attemptsMax, visibleAt, ownMs, flags = unpackFields(BODY_FORMAT, body)
  if band(flags, HAS_METADATA) ~= 0 then return nil end
  local event = c.cfg.history and pack(EVENT_FORMAT, 'p', 'r', c.now, 1, 2) or ''
  local own, ends = tokenOf(token, seq), leaseEnd(c, ownMs, askedMs)
  return pack(
    STATE_FORMAT, 'r', '-', flags, 1, attemptsMax, 2, priority, visibleAt, ownMs, ends, c.now, -1, -1, size, seq, #own, #event
  ) .. own .. event, seq, ends
end

local function leasePopped(c, popped, askedMs, token)
  local ids = {}
  for k = 1, #popped, 2 do ids[#ids + 1] = sub(popped[k], WAITING_KEY_AT) end
  local bodies, states = readMany(c.names[':m'], ids), readMany(c.names[':s'], ids)
  for k = #ids, 1, -1 do
    if not bodies[k] then
      damage(c, ids[k])
      remove(ids, k)
      remove(bodies, k)
      remove(states, k)
    end
  end
  local size, answer, written, running = #ids, {}, {}, {}
  local lastUntil, lastText
  for k = 1, size do
    local id, body = ids[k], bodies[k]
    local state, seq, ends
    if not states[k] and not c.wantsEvents then state, seq, ends = firstLease(c, body, askedMs, token, size) end
    if not state then
      local r = states[k] and recordOfState(id, states[k]) or recordOfBody(id, body)
      c.records[id], c.bodies[id] = r, body
      leaseOne(c, r, askedMs, token, size)
      appendRecord(c, answer, id)
    else
      if ends ~= lastUntil then
        lastUntil, lastText = ends, format('%d', ends)
        comesDue(c, ends)
      end
      local n = #written
      written[n + 1], written[n + 2] = id, state
      running[n + 1], running[n + 2] = lastText, seq .. id
      n = #answer
      answer[n + 1], answer[n + 2], answer[n + 3] = id, body, state
    end
  end
  writeMany('HSET', c.names[':s'], written)
  writeMany('ZADD', c.names[':r'], running)
  -- What was popped has left its index already.
  c.sets[':p'] = nil
  given(c, ids, token)
  return answer
end

-- A simple queue without a filter: whatever waits leaves the index as it is read. This is the hottest path of all: a message that
-- nobody has touched and that stands in no other index gets its state record without a detour, and one alone without a table in between.
local function leaseBest(c, wanted, askedMs, token)
  local names = c.names
  local popped = call('ZPOPMIN', names[':p'], wanted == 1 and '1' or wanted)
  if not popped[1] then return NONE end
  if popped[3] or c.wantsEvents or c.cfg.rateCount ~= 0 then return leasePopped(c, popped, askedMs, token) end
  local id = sub(popped[1], WAITING_KEY_AT)
  local body = call('HGET', names[':m'], id)
  local state, seq, ends
  if body and not call('HGET', names[':s'], id) then state, seq, ends = firstLease(c, body, askedMs, token, 1) end
  if not state then return leasePopped(c, popped, askedMs, token) end
  comesDue(c, ends)
  call('HSET', names[':s'], id, state)
  call('ZADD', names[':r'], format('%d', ends), seq .. id)
  call('HSET', names[':t'], requestOf(token), '1' .. id)
  return { id, body, state }
end

-- Without a filter. Nothing where the rate limit lets none through.
local function handOut(c, count, askedMs, token)
  local wanted = min(count, allowance(c))
  if wanted <= 0 then return NONE end
  if c.cfg.exclusiveKey then return leaseAll(c, bestOfValues(c, wanted), askedMs, token) end
  return leaseBest(c, wanted, askedMs, token)
end

local function dequeueFrom(c, args)
  local _, more = sweep(c, SWEEP_MAX)
  if more and args[6] ~= '1' then return 1, {} end
  local held = replay(c, match(args[5], '^[^.]*'))
  if held then return 0, held end
  if c.cfg.dequeueBlocked then return 0, {} end
  local askedMs, token = tonumber(args[4]), args[5]
  if #args == 8 then return 0, handOut(c, tonumber(args[3]), askedMs, token) end
  local wanted = min(tonumber(args[3]), allowance(c))
  if wanted <= 0 then return 0, {} end
  local keys, cursor = choose(c, wanted, args, args[7], args[8])
  if not keys then return 2, cursor end
  return 0, leaseAll(c, keys, askedMs, token)
end

local function dequeue(keys, args)
  local c = open(keys[2], args)
  return reply(c, dequeueFrom(c, args))
end
register('dequeue', { 'allow-oom' }, dequeue)
