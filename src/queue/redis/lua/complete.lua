-- complete: as the others of settle.lua. Completions of plain messages (no metadata, no exclusivity) go from record to record without a
-- detour: the hottest path beside dequeue. Whatever is not plain, or is mentioned twice, goes the way of all others. Messages leased
-- together differ in number and token alone, so what their records have in common is packed once, and known again by its bytes.
local completeAlone, completeAll
do
  local NOT_PLAIN = UNIQUE + HAS_METADATA

  -- What has been packed for the messages before, and what is to be written of them all.
  local function newBatch()
    return {
      keeps = false, shared = false, hasText = false, isPlain = false, head = '', event = '', size = 0, answer = '', expiresAt = 0,
      lengths = false, tokenLength = 0, historyAt = 0, historyEnd = 0, newLengths = '', request = '', ended = 0,
      states = {}, running = {}, done = {}, gone = {},
    }
  end

  -- Of one that is not kept only the token is remembered, as `collect` does it.
  local function share(c, batch, state, hasText)
    local letter, _, flags, attempts, attemptsMax, version, priority, visibleAt, leaseMs, leaseUntil, startedAt, _, _, size =
      unpackFields(STATE_HEAD_FORMAT, state)
    batch.shared, batch.hasText, batch.size = sub(state, 1, STATE_HEAD_SIZE), hasText, size
    batch.isPlain = letter == 'r' and band(flags, NOT_PLAIN) == 0 and (attempts < attemptsMax or leaseUntil > c.now)
    flags = bor(band(flags, 255 - HAS_TEXT), hasText and HAS_TEXT or 0, batch.keeps and 0 or HIDDEN)
    batch.expiresAt = c.now + (batch.keeps and c.cfg.retentionMs.c or SETTLED_TOKEN_MS)
    batch.head = pack(
      STATE_HEAD_FORMAT, 'c', 'c', flags, attempts, attemptsMax, version + 1, priority, visibleAt, leaseMs, -1, startedAt, c.now,
      batch.expiresAt, size
    )
    batch.event = c.cfg.history and batch.keeps and pack(EVENT_FORMAT, 'r', 'c', c.now, attempts, version + 1) or ''
    batch.answer = 'd' .. pack('>c1dd', 'c', version + 1, -1)
  end

  local LENGTHS_AT = STATE_SIZE - 3
  local function shareLengths(batch, state)
    local tokenLength, historyLength = unpackFields('>I2I2', state, LENGTHS_AT)
    batch.lengths, batch.tokenLength = sub(state, LENGTHS_AT, STATE_SIZE), tokenLength
    batch.historyAt, batch.historyEnd = STATE_SIZE + tokenLength + 1, STATE_SIZE + tokenLength + historyLength
    -- The oldest entries go when there are too many.
    batch.historyAt = max(batch.historyAt, batch.historyEnd + #batch.event - EVENTS_MAX * EVENT_SIZE + 1)
    if not batch.keeps then batch.historyAt = batch.historyEnd + 1 end
    batch.newLengths = pack('>I2I2', tokenLength, batch.historyEnd - batch.historyAt + 1 + #batch.event)
  end

  -- The record of a plain message that its holder has completed, and its number; nothing for any other.
  local function completed(c, batch, token, result, state)
    local hasText = result ~= '' and batch.keeps
    if hasText ~= batch.hasText or not batch.shared or find(state, batch.shared, 1, true) ~= 1 then
      share(c, batch, state, hasText)
      batch.lengths = false
    end
    if not batch.isPlain then return nil end
    if not batch.lengths or find(state, batch.lengths, LENGTHS_AT, true) ~= LENGTHS_AT then shareLengths(batch, state) end
    if #token ~= batch.tokenLength or find(state, token, STATE_SIZE + 1, true) ~= STATE_SIZE + 1 then return nil end
    local seq, text = sub(state, STATE_HEAD_SIZE + 1, STATE_HEAD_SIZE + 8), hasText and sub(result, 2) or ''
    return batch.head .. seq .. batch.newLengths .. token .. sub(state, batch.historyAt, batch.historyEnd) .. batch.event .. text, seq
  end

  local function tellEnded(c, batch)
    if batch.ended > 0 then endOfLease(c, batch.request, 0, batch.ended) end
    batch.ended = 0
  end

  -- Leases of one request mostly come one after the other.
  local function countEnded(c, batch, token)
    if batch.size == 1 then return endOfLease(c, token, 1) end
    if batch.ended == 0 or find(token, batch.request, 1, true) ~= 1 then
      tellEnded(c, batch)
      batch.request = sub(token, 1, find(token, '.', 1, true))
    end
    batch.ended = batch.ended + 1
  end

  local function completePlain(c, batch, id, token, result, state)
    local record, seq = completed(c, batch, token, result, state)
    if not record then return nil end
    local n, member = #batch.running + 1, seq .. id
    batch.running[n] = member
    if batch.keeps then
      batch.states[2 * n - 1], batch.states[2 * n] = id, record
      batch.done[2 * n - 1], batch.done[2 * n] = format('%d', seqScore(seq)), member
      expiresAt(c, id, batch.expiresAt)
    else
      local key = id .. '\0' .. token
      batch.gone[n] = id
      batch.states[2 * n - 1], batch.states[2 * n] = key, record
      expiresAt(c, key, batch.expiresAt)
    end
    countEnded(c, batch, token)
    return batch.answer
  end

  -- One lease alone, of a queue that keeps and is not exclusive: straight on, because every table and every word of code counts for a call
  -- that does so little. Nothing for whatever is not plain, and nothing has been written then.
  completeAlone = function(names, cfg, now, id, token, result)
    local state = call('HGET', names[':s'], id)
    if not state or byte(state) ~= 114 or band(byte(state, 3), NOT_PLAIN) ~= 0 then return nil end
    local _, _, flags, attempts, attemptsMax, version, priority, visibleAt, leaseMs, leaseUntil, startedAt, _, _, size, seq, tokenLength, historyLength =
      unpackFields(STATE_FORMAT, state)
    if tokenLength ~= #token or find(state, token, STATE_SIZE + 1, true) ~= STATE_SIZE + 1 then return nil end
    if attempts >= attemptsMax and leaseUntil <= now then return nil end
    local history, ends = sub(state, STATE_SIZE + tokenLength + 1, STATE_SIZE + tokenLength + historyLength), now + cfg.retentionMs.c
    if cfg.history then
      history = sub(history .. pack(EVENT_FORMAT, 'r', 'c', now, attempts, version + 1), -EVENTS_MAX * EVENT_SIZE)
    end
    flags = bor(band(flags, 255 - HAS_TEXT), result ~= '' and HAS_TEXT or 0)
    local member = seq .. id
    call('HSET', names[':s'], id, pack(
      STATE_FORMAT, 'c', 'c', flags, attempts, attemptsMax, version + 1, priority, visibleAt, leaseMs, -1, startedAt, now, ends, size, seq,
      tokenLength, #history
    ) .. token .. history .. sub(result, 2))
    call('ZREM', names[':r'], member)
    call('ZADD', names[':dc'], format('%d', seqScore(seq)), member)
    call('ZADD', names[':x'], format('%d', ends), 's' .. id)
    local request = requestOf(token)
    if size == 1 then
      call('HDEL', names[':t'], request)
    elseif call('HINCRBY', names[':t'], request .. '#', '-1') <= 0 then
      call('HDEL', names[':t'], request, request .. '#')
    end
    return 'd' .. pack('>c1dd', 'c', version + 1, -1)
  end

  completeAll = function(c, args, from, to)
    if c.cfg.exclusiveKey or c.wantsEvents then
      return settleAll(c, args, from, to, 3, 'c', completeOne)
    end
    if to == from + 2 and c.cfg.retentionMs.c > 0 then
      return completeAlone(c.names, c.cfg, c.now, args[from], args[from + 1], args[to]) or settleAll(c, args, from, to, 3, 'c', completeOne)
    end
    local ids, answers, seen, batch = {}, {}, {}, newBatch()
    batch.keeps = c.cfg.retentionMs.c > 0
    for k = from, to, 3 do ids[#ids + 1] = args[k] end
    local states = readMany(c.names[':s'], ids)
    for n = 1, #ids do
      local k, id = from + 3 * (n - 1), ids[n]
      answers[n] = states[n] and not seen[id] and completePlain(c, batch, id, args[k + 1], args[k + 2], states[n])
      seen[id] = true
    end
    tellEnded(c, batch)
    writeMany('HDEL', c.names[':m'], batch.gone)
    writeMany('HDEL', c.names[':s'], batch.gone)
    writeMany('HSET', c.names[':s'], batch.states)
    writeMany('ZREM', c.names[':r'], batch.running)
    writeMany('ZADD', c.names[':dc'], batch.done)
    local others = NONE
    for n = 1, #ids do
      if not answers[n] then
        if others == NONE then others = {} end
        others[#others + 1] = ids[n]
      end
    end
    if others == NONE then return concat(answers) end
    load(c, others)
    for n = 1, #ids do
      local k = from + 3 * (n - 1)
      if not answers[n] then answers[n] = settleAll(c, args, k, k + 2, 3, 'c', completeOne) end
    end
    return concat(answers)
  end
end

register('complete', { 'allow-oom' }, function(keys, args)
  local c = open(keys[2], args)
  return reply(c, 0, completeAll(c, args, 3, #args))
end)
