-- enqueue: stores new messages.
-- Guarantee: an id that is known changes nothing; each message is answered by itself; nothing is written when the server
-- is full (the server refuses the call before it begins).
-- keys: queue. args: now, events, then for each message: id, options (`priority,delayMs,attemptsMax,leaseMs,flags`, empty
-- where the queue's default holds; flags: 1 unique while live, 8 has metadata), head and payload as in a body.
-- answer: one string, two characters a message: n (new), k (known), c (conflict), b (blocked), m (no exclusivity value),
-- and the state; and whether the queue was new.
local function enqueueOne(c, id, options, tail, numbers)
  local existing = c.bodies[id]
  if existing then
    local r = c.records[id] or recordOfBody(id, existing)
    local payload = sub(tail, find(tail, '\n', 1, true) + 1)
    return (payloadOf(existing) == payload and 'k' or 'c') .. r[STATE]
  end
  if c.cfg.enqueueBlocked then return 'b-' end
  local priority, delay, attempts, lease, flagText = string.match(options, '^([^,]*),([^,]*),([^,]*),([^,]*),(%d+)$')
  local flags = tonumber(flagText)
  local r = {
    'p', '-', flags, 0, tonumber(attempts) or c.cfg.attemptsMax, 1, tonumber(priority) or c.now,
    c.now + (tonumber(delay) or c.cfg.delayMs), tonumber(lease) or -1, -1, -1, -1, -1, 0, '', 0, 0, '', '', '',
    id, false, false,
  }
  if band(flags, HAS_METADATA) ~= 0 then r[METADATA] = cjson.decode(sub(tail, 1, find(tail, '\n', 1, true) - 1))[1] end
  if c.cfg.exclusiveKey and not valueOf(c, r) then return 'm-' end
  if c.cfg.history then flags = bor(flags, HISTORY_FROM_START) end
  if r[VISIBLE_AT] > c.now then
    r[STATE] = 'i'
    flags = bor(flags, BEGAN_INVISIBLE)
  end
  numbers.low = numbers.low + 1
  if numbers.low == SEQ_HALF then numbers.high, numbers.low = numbers.high + 1, 0 end
  r[SEQ] = packSeq(numbers.high, numbers.low)
  r[FLAGS] = flags
  c.bodies[id] = pack(BODY_FORMAT, r[SEQ], r[PRIORITY], c.now, r[ATTEMPTS_MAX], r[VISIBLE_AT], r[LEASE_MS], flags) .. tail
  c.records[id] = r
  c.dirty[id] = 'body'
  place(c, r)
  if c.wantsEvents then
    tellEvent(c, id, pack(EVENT_FORMAT, '-', r[STATE], c.now, 0, 1) .. r[SEQ], headOf(c.bodies[id]))
  end
  return 'n' .. r[STATE]
end

-- Of the known among the ids the state is read as well; of a new one there is none.
local function readKnown(c, ids)
  local bodies, known = readMany(c.base .. ':m', ids), {}
  for k = 1, #ids do
    if c.bodies[ids[k]] == nil then
      c.bodies[ids[k]] = bodies[k]
      if bodies[k] then known[#known + 1] = ids[k] end
    end
  end
  load(c, known)
end

local function enqueueAll(c, args, from)
  local ids, numbers, answers = {}, { high = 0, low = 0 }, {}
  for k = from, #args, 3 do ids[#ids + 1] = args[k] end
  readKnown(c, ids)
  local last = call('HGET', c.base .. ':q', 'seq')
  if last then numbers.high, numbers.low = unpackFields('>I4I4', last) end
  local before = packSeq(numbers.high, numbers.low)
  local isPlain = not c.cfg.exclusiveKey
  for k = from, #args, 3 do
    answers[#answers + 1] = enqueueOne(c, args[k], args[k + 1], args[k + 2], numbers)
    isPlain = isPlain and byte(args[k + 2]) == 10
  end
  local seq = packSeq(numbers.high, numbers.low)
  if seq ~= before then
    -- Who waits has been told of what is already there; with metadata or values the new one may be another's.
    if c.hint and isPlain and call('ZCARD', c.base .. ':p') > 0 then c.hint = false end
    call('HSET', c.base .. ':q', 'seq', seq)
  end
  return table.concat(answers), not last
end

local function enqueue(keys, args)
  local c = open(keys[2], args)
  local answers, isNew = enqueueAll(c, args, 3)
  return reply(c, isNew and 1 or 0, answers)
end
register('enqueue', {}, enqueue)
