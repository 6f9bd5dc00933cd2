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
  local given = call('HGET', c.base .. ':t', request)
  if not given then return nil end
  local ids = byte(given) == 49 and { sub(given, 2) } or cmsgpack.unpack(sub(given, 2))
  load(c, ids)
  local answer = {}
  for k = 1, #ids do
    local r = c.records[ids[k]]
    if r and r[STATE] == 'r' and string.match(r[TOKEN], '^[^.]*') == request and bodyOf(c, ids[k]) then
      appendRecord(c, answer, ids[k])
    end
  end
  return #answer > 0 and answer or nil
end

-- How many more the rate limit lets through now. Grants are `at, count` pairs; past GRANTS_MAX they are joined into the
-- last one, which only makes the limit stricter.
local GRANTS_MAX = 128
local function allowance(c)
  if c.cfg.rateCount == 0 then return math.huge end
  local stored = call('HGET', c.base .. ':q', 'grants')
  local grants, kept, sum = stored and cmsgpack.unpack(stored) or {}, {}, 0
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
  if c.cfg.rateCount == 0 or taken == 0 then return end
  local n = #c.grants
  if n >= 2 * GRANTS_MAX then
    c.grants[n - 1], c.grants[n] = c.now, c.grants[n] + taken
  else
    c.grants[n + 1], c.grants[n + 2] = c.now, taken
  end
  call('HSET', c.base .. ':q', 'grants', cmsgpack.pack(c.grants))
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
  local entries = readMany(c.base .. ':v', values)
  for k = 1, #values do
    if entries[k] and byte(entries[k]) == 114 then busy[values[k]] = true end
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
    local busy = c.cfg.exclusiveKey and busyValues(c, keys) or {}
    for k = 1, #keys do
      local r = c.records[keys[k]]
      local value = r and valueOf(c, r)
      if r and #chosen < wanted and not (value and busy[value]) and matches(c, r, args, 9) then
        chosen[#chosen + 1] = keys[k]
        if value then busy[value] = true end
      end
    end
    walked, rank = walked + #members, rank + #members
    member = members[#members] or member
    if #members < step then return chosen end
  end
  if #chosen > 0 then return chosen end
  return nil, { tostring(call('ZSCORE', key, member)), member }
end

-- The best of all: the heads of the idle values, else whatever waits. On a simple queue they leave the index as they are read.
local function best(c, wanted)
  if c.cfg.exclusiveKey then
    return keysOf(c, ':h', call('ZRANGE', c.base .. ':h', 0, wanted - 1), WAITING_KEY_AT)
  end
  local popped, members = call('ZPOPMIN', c.base .. ':p', wanted), {}
  for k = 1, #popped, 2 do members[#members + 1] = popped[k] end
  return keysOf(c, ':p', members, WAITING_KEY_AT)
end

local function lease(c, keys, leaseMs, token)
  local answer, ids = {}, {}
  local untouched = {}
  for k = 1, #keys do
    if c.bodies[keys[k]] == nil then untouched[#untouched + 1] = keys[k] end
  end
  local bodies = readMany(c.base .. ':m', untouched)
  for k = 1, #untouched do c.bodies[untouched[k]] = bodies[k] end
  for k = 1, #keys do
    if c.records[keys[k]] and c.bodies[keys[k]] then ids[#ids + 1] = keys[k] end
  end
  for k = 1, #ids do
    local r = c.records[ids[k]]
    displace(c, r)
    r[STATE] = 'r'
    r[ENDED] = '-'
    r[ATTEMPTS] = r[ATTEMPTS] + 1
    r[LEASE_UNTIL] = c.now + (leaseMs or (r[LEASE_MS] >= 0 and r[LEASE_MS]) or c.cfg.leaseMs)
    r[STARTED_AT] = c.now
    r[TOKEN] = token .. format('.%d.%d', unpackFields('>I4I4', r[SEQ]))
    r[REQUEST_SIZE] = #ids
    moved(c, r, 'p')
    appendRecord(c, answer, ids[k])
  end
  if #ids > 0 then
    local request = string.match(token, '^[^.]*')
    if #ids == 1 then
      call('HSET', c.base .. ':t', request, '1' .. ids[1])
    else
      call('HSET', c.base .. ':t', request, 'n' .. cmsgpack.pack(ids), request .. '#', #ids)
    end
  end
  grant(c, #ids)
  return answer
end

local function dequeueFrom(c, args)
  local _, more = sweep(c, SWEEP_MAX)
  if more and args[6] ~= '1' then return 1, {} end
  local held = replay(c, string.match(args[5], '^[^.]*'))
  if held then return 0, held end
  if c.cfg.dequeueBlocked then return 0, {} end
  local wanted = min(tonumber(args[3]), allowance(c))
  if wanted <= 0 then return 0, {} end
  local keys, cursor
  if #args > 8 then
    keys, cursor = choose(c, wanted, args, args[7], args[8])
  else
    keys = best(c, wanted)
  end
  if not keys then return 2, cursor end
  local answer = lease(c, keys, tonumber(args[4]), args[5])
  -- What was popped has left its index already.
  if #args == 8 and not c.cfg.exclusiveKey then c.sets[':p'] = nil end
  return 0, answer
end

local function dequeue(keys, args)
  local c = open(keys[2], args)
  return reply(c, dequeueFrom(c, args))
end
register('dequeue', { 'allow-oom' }, dequeue)
