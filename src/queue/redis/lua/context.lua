-- One call of one queue: the time, the configuration, and everything the call is going to write (`flush` makes it so).
-- Records read in a call are kept, so that the second mention of an id sees the first.
local CONFIGURATION_FORMAT = '>BBBBI4ddddddd'
local CONFIGURATION_SIZE = 64

-- The same few texts come with every call: what they say is kept.
local configurations, configurationsKept = {}, 0

local function configurationOf(packed)
  packed = packed or DEFAULT_CONFIGURATION
  local known = configurations[packed]
  if known then return known end
  local exclusive, enqueueBlocked, dequeueBlocked, history, attemptsMax, leaseMs, delayMs, completed, canceled, errored, count, perMs =
    unpackFields(CONFIGURATION_FORMAT, packed)
  if configurationsKept == 1000 then configurations, configurationsKept = {}, 0 end
  configurationsKept = configurationsKept + 1
  configurations[packed] = {
    exclusiveKey = exclusive == 1 and sub(packed, CONFIGURATION_SIZE + 1) or false,
    enqueueBlocked = enqueueBlocked == 1, dequeueBlocked = dequeueBlocked == 1, history = history == 1,
    attemptsMax = attemptsMax, leaseMs = leaseMs, delayMs = delayMs,
    retentionMs = { c = completed, x = canceled, e = errored },
    rateCount = count, ratePerMs = perMs,
  }
  return configurations[packed]
end

-- Stands for a table that is rarely written to; whoever writes makes one of his own.
local NONE = {}

local function newContext()
  return {
    base = '', names = NONE, now = 0, cfg = NONE, seq = false, wantsEvents = false, events = NONE, damaged = NONE,
    records = {}, bodies = {}, dirty = {}, sets = {}, counts = NONE, requests = NONE, expiring = NONE,
    touched = NONE, busy = NONE, freed = NONE, hint = false,
  }
end

local function emptied(t)
  return next(t) and {} or t
end

-- Unix milliseconds: as told, or by the server's clock.
local function clockOf(text)
  local now = text and text ~= '' and tonumber(text)
  if now then return now end
  local time = call('TIME')
  return time[1] * 1000 + floor(time[2] / 1000)
end

-- args[1]: unix milliseconds, or '' for the server's clock. args[2]: '1' when the caller wants the events. One context serves all
-- calls, which follow one another; a call that works on several queues asks for contexts of its own. Whoever is going to enqueue
-- gets the last number given as well.
local common
local function open(base, args, isOwn, isEnqueue)
  local now = clockOf(args[1])
  if not common then common = newContext() end
  local c = isOwn and newContext() or common
  c.base, c.names, c.now, c.wantsEvents, c.hint = base, namesOf(base), now, args[2] == '1', false
  if isEnqueue then
    local fields = call('HMGET', c.names[':q'], 'fast', 'seq')
    c.cfg, c.seq = configurationOf(fields[1]), fields[2]
  else
    c.cfg = configurationOf(call('HGET', c.names[':q'], 'fast'))
  end
  c.records, c.bodies, c.dirty, c.sets = emptied(c.records), emptied(c.bodies), emptied(c.dirty), emptied(c.sets)
  c.events, c.damaged, c.counts, c.requests, c.expiring = NONE, NONE, NONE, NONE, NONE
  c.touched, c.busy, c.freed = NONE, NONE, NONE
  return c
end

local function damage(c, key)
  if c.damaged == NONE then c.damaged = {} end
  c.damaged[#c.damaged + 1] = key
end

local function tellEvent(c, key, packed, head)
  if c.events == NONE then c.events = {} end
  local n = #c.events
  c.events[n + 1], c.events[n + 2], c.events[n + 3] = key, packed, head
end

-- A message of `value` has come, gone, or (with its key) runs; or the running one has ended.
local function touch(c, value, busyKey, isFreed)
  if c.touched == NONE then c.touched, c.busy, c.freed = {}, {}, {} end
  c.touched[value] = true
  if busyKey then c.busy[value] = busyKey end
  if isFreed then c.freed[value], c.busy[value] = true, nil end
end

-- The token begins with the request id.
local function requestOf(token)
  return sub(token, 1, find(token, '.', 1, true) - 1)
end

-- A lease of a request has ended, or `by` of them.
local function endOfLease(c, token, requestSize, by)
  local request = requestOf(token)
  if c.requests == NONE then c.requests = {} end
  c.requests[request] = requestSize == 1 or (c.requests[request] or 0) + (by or 1)
end

-- A terminal message is to be collected then. Those that end together make one member: what is collected is checked against
-- the record, so a member whose message has gone or ends at another time does no harm.
local EXPIRING_TOGETHER = 100

local function expiresAt(c, key, at)
  if c.expiring == NONE then c.expiring = {} end
  local keys = c.expiring[at]
  if not keys then
    keys = {}
    c.expiring[at] = keys
  end
  keys[#keys + 1] = key
end

-- The stake is no message.
local function runningCount(key)
  return max(0, call('ZCARD', key) - 1)
end

-- HMGET of any number of fields.
local function readMany(key, fields)
  local n = #fields
  if n == 0 then return {} end
  if n <= ARGUMENTS_MAX then return call('HMGET', key, unpack(fields)) end
  local all = {}
  for from = 1, n, ARGUMENTS_MAX do
    local part = call('HMGET', key, unpack(fields, from, min(n, from + ARGUMENTS_MAX - 1)))
    for k = 1, #part do all[from + k - 1] = part[k] end
  end
  return all
end

local function writeMany(command, key, args)
  local n = #args
  if n == 0 then return end
  if n <= ARGUMENTS_MAX then return call(command, key, unpack(args)) end
  for from = 1, n, ARGUMENTS_MAX do call(command, key, unpack(args, from, min(n, from + ARGUMENTS_MAX - 1))) end
end

-- Puts the records of `keys` into c.records; false for one that is not known. Bodies are read where they are needed: for a
-- message nobody has touched, and for one whose metadata stand in an index.
local function load(c, keys)
  local missing = {}
  for k = 1, #keys do
    if c.records[keys[k]] == nil then missing[#missing + 1] = keys[k] end
  end
  if #missing == 0 then return end
  local bodiless = {}
  local states = readMany(c.names[':s'], missing)
  for k = 1, #missing do
    local key, packed = missing[k], states[k]
    if packed then
      local r = recordOfState(key, packed)
      c.records[key] = r
      if band(r[FLAGS], HAS_METADATA) ~= 0 and c.bodies[key] == nil then bodiless[#bodiless + 1] = key end
    elseif c.bodies[key] == nil then
      bodiless[#bodiless + 1] = key
    end
  end
  local bodies = readMany(c.names[':m'], bodiless)
  for k = 1, #bodiless do c.bodies[bodiless[k]] = bodies[k] end
  for k = 1, #missing do
    local key = missing[k]
    if not c.records[key] then
      local body = c.bodies[key]
      c.records[key] = body and recordOfBody(key, body) or false
    end
  end
end

local function bodyOf(c, key)
  local body = c.bodies[key]
  if body == nil then
    body = call('HGET', c.names[':m'], key)
    c.bodies[key] = body
  end
  return body
end

-- `{ key, value, key, value, … }`, or nil.
local function metadataOf(c, r)
  if band(r[FLAGS], HAS_METADATA) == 0 then return nil end
  if not r[METADATA] then
    local body = bodyOf(c, r[KEY])
    r[METADATA] = body and decodeJson(headOf(body))[1] or {}
  end
  return r[METADATA]
end

local function valueAmong(metadata, key)
  for k = 1, metadata and #metadata or 0, 2 do
    if metadata[k] == key then return metadata[k + 1] end
  end
  return nil
end

local function valueOf(c, r)
  local key = c.cfg.exclusiveKey
  return key and valueAmong(metadataOf(c, r), key) or nil
end

-- The last word on a member of a set counts: a score, or false to take it out.
local function put(c, suffix, member, score)
  local set = c.sets[suffix]
  if not set then
    set = {}
    c.sets[suffix] = set
  end
  set[member] = score
end

local function count(c, field, by)
  if c.counts == NONE then c.counts = {} end
  c.counts[field] = (c.counts[field] or 0) + by
end
