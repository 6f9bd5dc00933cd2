-- Leases: what waits becomes what runs. Which request was given what is kept for its repeat, and what a rate limit lets through is counted.
-- A taker is who is handed messages: `count`, `askedMs` and `token`.
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
  if c.cfg.rateCount == 0 or taken == 0 then return end
  local n = #c.grants
  if n >= 2 * GRANTS_MAX then
    c.grants[n - 1], c.grants[n] = c.now, c.grants[n] + taken
  else
    c.grants[n + 1], c.grants[n + 2] = c.now, taken
  end
  call('HSET', c.names[':q'], 'grants', encodeList(c.grants))
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

-- Which request was given what, as fields of t.
local function given(fields, token, ids)
  local request, n, size = requestOf(token), #fields, #ids
  if size == 1 then
    fields[n + 1], fields[n + 2] = request, '1' .. ids[1]
  elseif size > 1 then
    fields[n + 1], fields[n + 2] = request, 'n' .. encodeList(ids)
    fields[n + 3], fields[n + 4] = request .. '#', format('%d', size)
  end
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
  local requests = {}
  given(requests, token, ids)
  writeMany('HSET', c.names[':t'], requests)
  grant(c, #ids)
  return answer
end

-- The heads of the idle values.
local function bestOfValues(c, wanted)
  return keysOf(c, ':h', call('ZRANGE', c.names[':h'], 0, wanted - 1), WAITING_KEY_AT)
end
