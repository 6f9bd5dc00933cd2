-- extend, complete, fail, release: what the holder of a lease does with it.
-- Guarantee: only the current token changes anything; a repeat by the holder gets the same answer, for as long as the
-- token of an ended message is remembered; each lease is answered by itself. Works on a full server.
-- keys: queue. args: now, events, then for each lease: id, token, and
--   extend: ms or '' | complete: `r` and the result, or '' | fail: delay ms or '', error | release: delay ms, 1 to refund
-- answer: 18 bytes a lease: d (done), l (lost) or x (canceled), the state, version, lease until or -1.
local function done(r)
  return 'd' .. pack('>c1dd', r[STATE], r[VERSION], r[LEASE_UNTIL])
end
local function nothing(letter)
  return letter .. pack('>c1dd', '-', 0, -1)
end

-- The answer to a holder that holds no longer: its own earlier answer, `canceled`, or `lost`.
local function answerAfterEnd(c, id, token, ended)
  local r = c.records[id]
  if not r or r[TOKEN] ~= token then
    local departed = id .. '\0' .. token
    load(c, { departed })
    r = c.records[departed]
  end
  if r and r[ENDED] == 'x' then return nothing('x') end
  if r and ended and r[ENDED] == ended then return done(r) end
  return nothing('l')
end

local function settleAll(c, args, from, to, stride, ended, change)
  local ids, answers = {}, {}
  for k = from, to, stride do ids[#ids + 1] = args[k] end
  load(c, ids)
  for k = from, to, stride do
    local r = heldBy(c, args[k], args[k + 1])
    if r then
      change(c, r, args[k + 2], args[k + 3])
      answers[#answers + 1] = done(r)
    else
      answers[#answers + 1] = answerAfterEnd(c, args[k], args[k + 1], ended)
    end
  end
  return concat(answers)
end

local function extendOne(c, r, leaseMs)
  r[LEASE_UNTIL] = c.now + (tonumber(leaseMs) or (r[LEASE_MS] >= 0 and r[LEASE_MS]) or c.cfg.leaseMs)
  r[VERSION] = r[VERSION] + 1
  r[PACKED] = false
  put(c, ':r', plainMember(r), r[LEASE_UNTIL])
  record(c, r, 'r')
  c.dirty[r[KEY]] = 'state'
end

local function completeOne(c, r, result)
  finish(c, r, 'c', 'c', result ~= '' and sub(result, 2))
end

-- Completions of plain messages (no metadata, no exclusivity) go from record to record without a detour: the hottest path
-- beside dequeue. Whatever is not plain, or is mentioned twice, goes the way of all others.
local NOT_PLAIN = UNIQUE + HAS_METADATA

-- The record of a plain message that its holder has completed, its number, the size of its request, the version it had. Of one that is
-- not kept only the token is remembered, as `collect` does it.
local function completedState(c, token, result, state)
  if not state or byte(state) ~= 114 or band(byte(state, 3), NOT_PLAIN) ~= 0 then return nil end
  local _, _, flags, attempts, attemptsMax, version, priority, visibleAt, leaseMs, leaseUntil, startedAt, _, _, size, seq, tokenLength, historyLength =
    unpackFields(STATE_FORMAT, state)
  local history = STATE_SIZE + tokenLength
  if sub(state, STATE_SIZE + 1, history) ~= token then return nil end
  if attempts >= attemptsMax and leaseUntil <= c.now then return nil end
  local events = ''
  if historyLength > 0 then events = sub(state, history + 1, history + historyLength) end
  if c.cfg.history then
    events = sub(events .. pack(EVENT_FORMAT, 'r', 'c', c.now, attempts, version + 1), -EVENTS_MAX * EVENT_SIZE)
  end
  local keepMs = c.cfg.retentionMs.c
  flags = band(flags, 255 - HAS_TEXT)
  if keepMs == 0 then
    keepMs, flags, events, result = SETTLED_TOKEN_MS, bor(flags, HIDDEN), '', ''
  elseif result ~= '' then
    flags = flags + HAS_TEXT
  end
  return pack(
    STATE_FORMAT, 'c', 'c', flags, attempts, attemptsMax, version + 1, priority, visibleAt, leaseMs, -1, startedAt, c.now,
    c.now + keepMs, size, seq, tokenLength, #events
  ) .. token .. events .. sub(result, 2), seq, size, version
end

local function completedAnswer(version)
  return 'd' .. pack('>c1dd', 'c', version + 1, -1)
end

local function completePlain(c, batch, id, token, result, state)
  local completed, seq, size, version = completedState(c, token, result, state)
  if not completed then return nil end
  local n, member = #batch.running + 1, seq .. id
  batch.running[n] = member
  if c.cfg.retentionMs.c == 0 then
    local key = id .. '\0' .. token
    batch.gone[n] = id
    batch.states[2 * n - 1], batch.states[2 * n] = key, completed
    expiresAt(c, key, c.now + SETTLED_TOKEN_MS)
  else
    batch.states[2 * n - 1], batch.states[2 * n] = id, completed
    batch.done[2 * n - 1], batch.done[2 * n] = format('%d', seqScore(seq)), member
    expiresAt(c, id, c.now + c.cfg.retentionMs.c)
  end
  endOfLease(c, token, size)
  if version ~= batch.version then batch.version, batch.answer = version, completedAnswer(version) end
  return batch.answer
end

-- One lease alone: the same, without a table in between.
local function completeAlone(c, id, token, result)
  local names = c.names
  local completed, seq, size, version = completedState(c, token, result, call('HGET', names[':s'], id))
  if not completed then return nil end
  local member = seq .. id
  call('HSET', names[':s'], id, completed)
  call('ZREM', names[':r'], member)
  call('ZADD', names[':dc'], format('%d', seqScore(seq)), member)
  call('ZADD', names[':x'], format('%d', c.now + c.cfg.retentionMs.c), 's' .. id)
  if size == 1 then call('HDEL', names[':t'], requestOf(token)) else endOfLease(c, token, size) end
  return completedAnswer(version)
end

local function completeAll(c, args, from, to)
  if c.cfg.exclusiveKey or c.wantsEvents then
    return settleAll(c, args, from, to, 3, 'c', completeOne)
  end
  if to == from + 2 and c.cfg.retentionMs.c > 0 then
    return completeAlone(c, args[from], args[from + 1], args[to]) or settleAll(c, args, from, to, 3, 'c', completeOne)
  end
  local ids, answers, seen = {}, {}, {}
  local batch = { states = {}, running = {}, done = {}, gone = {}, version = false, answer = false }
  for k = from, to, 3 do ids[#ids + 1] = args[k] end
  local states = readMany(c.names[':s'], ids)
  for n = 1, #ids do
    local k = from + 3 * (n - 1)
    local id = ids[n]
    answers[n] = not seen[id] and completePlain(c, batch, id, args[k + 1], args[k + 2], states[n])
    seen[id] = true
  end
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

local function failOne(c, r, delayMs, text)
  if delayMs == '' or r[ATTEMPTS] >= r[ATTEMPTS_MAX] then return finish(c, r, 'e', 'f', text) end
  setText(r, text)
  giveBack(c, r, tonumber(delayMs), 'f', false)
end

local function releaseOne(c, r, delayMs, refund)
  if refund ~= '1' and r[ATTEMPTS] >= r[ATTEMPTS_MAX] then
    return finish(c, r, 'e', 'r', 'released with no attempts left')
  end
  giveBack(c, r, tonumber(delayMs), 'r', refund == '1')
end

local function settlement(name, stride, ended, change)
  register(name, { 'allow-oom' }, function(keys, args)
    local c = open(keys[2], args)
    return reply(c, 0, settleAll(c, args, 3, #args, stride, ended, change))
  end)
end
settlement('extend', 3, false, extendOne)
register('complete', { 'allow-oom' }, function(keys, args)
  local c = open(keys[2], args)
  return reply(c, 0, completeAll(c, args, 3, #args))
end)
settlement('fail', 4, 'f', failOne)
settlement('release', 4, 'r', releaseOne)
