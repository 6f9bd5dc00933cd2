-- dequeue: hands out the best messages, each under a lease.
-- Guarantee: what is due or expired is looked at first; a repeat of a request gives those of its leases that still run; at
-- most one running message of an exclusivity value; in order of (priority, number). Walks at most WALK_MAX messages: when
-- nothing was found in them, the answer is where to go on.
-- keys: queue. args: now, events, count, lease ms or '', token (request id, dot, random; where there are
-- several, each message's has its number behind), 1 to go on although more is due,
-- cursor (score, member; empty at the start), then the pairs of the filter: key, value, …
-- answer: id, body and state record of each message. again: 1 more is due, first; 2 go on at the cursor that is the answer.
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
