-- enqueue: stores new messages.
-- Guarantee: an id that is known changes nothing; each message is answered by itself; nothing is written when the server
-- is full (the server refuses the call before it begins).
-- keys: queue. args: now, events, then for each message: id, options (`priority,delayMs,attemptsMax,leaseMs,flags`, empty
-- where the queue's default holds; flags: 1 unique while live, 8 has metadata), head and payload as in a body.
-- answer: one string, two characters a message: n (new), k (known), c (conflict), b (blocked), m (no exclusivity value),
-- and the state; and whether the queue was new.
local function nextSeq(numbers)
  numbers.low = numbers.low + 1
  if numbers.low == SEQ_HALF then numbers.high, numbers.low = numbers.high + 1, 0 end
end

local function answerKnown(c, id, body, tail)
  local r = c.records[id] or recordOfBody(id, body)
  local payload = sub(tail, find(tail, '\n', 1, true) + 1)
  return (payloadOf(body) == payload and 'k' or 'c') .. r[STATE]
end

-- What messages with the same options have in common: their bodies but for the number, and where they stand.
local function shareOptions(c, batch, options)
  local priority, delay, attempts, lease, flags = '', '', '', '', 0
  if options ~= ',,,,0' then
    priority, delay, attempts, lease, flags = match(options, '^([^,]*),([^,]*),([^,]*),([^,]*),(%d+)$')
    flags = tonumber(flags)
  end
  batch.options, batch.hasMetadata = options, band(flags, HAS_METADATA) ~= 0
  batch.visibleAt = c.now + (delay ~= '' and tonumber(delay) or c.cfg.delayMs)
  batch.isVisible = batch.visibleAt <= c.now
  batch.visibleText = pack('>I6', max(0, batch.visibleAt))
  batch.priorityText = priority ~= '' and priority or format('%d', c.now)
  if c.cfg.history then flags = flags + HISTORY_FROM_START end
  if not batch.isVisible then flags = flags + BEGAN_INVISIBLE end
  batch.shared = pack(
    BODY_SHARED_FORMAT, priority ~= '' and tonumber(priority) or c.now, c.now, attempts ~= '' and tonumber(attempts) or c.cfg.attemptsMax,
    batch.visibleAt, lease ~= '' and tonumber(lease) or -1, flags
  )
end

-- What stands in p or i alone is written without a detour, all of a call together.
local function enqueuePlain(c, batch, id, body, seq)
  local n = #batch.bodies
  batch.bodies[n + 1], batch.bodies[n + 2] = id, body
  if not batch.isVisible then
    put(c, ':i', seq .. id, batch.visibleAt)
    return 'ni'
  end
  n = #batch.pending
  batch.pending[n + 1], batch.pending[n + 2] = batch.priorityText, seq .. batch.visibleText .. id
  c.hint = true
  return 'np'
end

local function enqueueOne(c, batch, id, options, tail)
  local existing = c.bodies[id]
  if existing then return answerKnown(c, id, existing, tail) end
  if c.cfg.enqueueBlocked then return 'b-' end
  if options ~= batch.options then shareOptions(c, batch, options) end
  local key = c.cfg.exclusiveKey
  local metadata = batch.hasMetadata and decodeJson(sub(tail, 1, find(tail, '\n', 1, true) - 1))[1]
  if key and not valueAmong(metadata, key) then return 'm-' end
  nextSeq(batch)
  local seq = packSeq(batch.high, batch.low)
  local body = seq .. batch.shared .. tail
  c.bodies[id] = body
  if not key and not metadata and not c.wantsEvents then return enqueuePlain(c, batch, id, body, seq) end
  local r = recordOfBody(id, body)
  r[METADATA] = metadata
  c.records[id] = r
  c.dirty[id] = 'body'
  place(c, r)
  if c.wantsEvents then tellEvent(c, id, pack(EVENT_FORMAT, '-', r[STATE], c.now, 0, 1) .. seq, headOf(body)) end
  return 'n' .. r[STATE]
end

-- Of the known among the ids the state is read as well; of a new one there is none.
local function readKnown(c, ids)
  local bodies, known = readMany(c.names[':m'], ids), {}
  for k = 1, #ids do
    if c.bodies[ids[k]] == nil then
      c.bodies[ids[k]] = bodies[k]
      if bodies[k] then known[#known + 1] = ids[k] end
    end
  end
  load(c, known)
end

local function enqueueAll(c, args, from)
  local ids, answers = {}, {}
  for k = from, #args, 3 do ids[#ids + 1] = args[k] end
  readKnown(c, ids)
  local last = c.seq
  local batch = {
    high = 0, low = 0, bodies = {}, pending = {}, options = false, shared = '', hasMetadata = false, isVisible = true, visibleAt = 0,
    visibleText = '', priorityText = '',
  }
  if last then batch.high, batch.low = unpackFields('>I4I4', last) end
  local low, isPlain = batch.low, not c.cfg.exclusiveKey
  for k = from, #args, 3 do
    answers[#answers + 1] = enqueueOne(c, batch, args[k], args[k + 1], args[k + 2])
    isPlain = isPlain and byte(args[k + 2]) == 10
  end
  if batch.low ~= low then
    -- Who waits has been told of what is already there; with metadata or values the new one may be another's.
    if c.hint and isPlain and call('ZCARD', c.names[':p']) > 0 then c.hint = false end
    call('HSET', c.names[':q'], 'seq', packSeq(batch.high, batch.low))
    if not last then call('ZADD', c.names[':r'], STAKE_SCORE, STAKE) end
    writeMany('HSET', c.names[':m'], batch.bodies)
    writeMany('ZADD', c.names[':p'], batch.pending)
  end
  return concat(answers), not last
end

local function enqueue(keys, args)
  local c = open(keys[2], args, false, true)
  local answers, isNew = enqueueAll(c, args, 3)
  return reply(c, isNew and 1 or 0, answers)
end
register('enqueue', {}, enqueue)
