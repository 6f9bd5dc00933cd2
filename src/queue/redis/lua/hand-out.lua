-- Without a filter a dequeue takes the best that waits, and what a simple queue hands out leaves the index as it is read. This is the hottest
-- path of all: a message that nobody has touched and that stands in no other index gets its state record without a detour. Messages of
-- one enqueue differ in their number alone, so what the records of a taker have in common is packed once, and known again by the
-- bytes of the body that it comes from.
local newTaker, leaseFresh, leaseMember, handOut, handOutTogether
do
  newTaker = function(count, askedMs, token)
    return {
      count = count, askedMs = askedMs, token = token, size = 0, event = '', shared = false, isPlain = false, head = '', endsText = '',
      high = false, beginning = '', length = 0, lengths = '',
    }
  end

  local function prepare(c, taker, size)
    taker.size, taker.shared, taker.high, taker.length = size, false, false, 0
    taker.event = c.cfg.history and pack(EVENT_FORMAT, 'p', 'r', c.now, 1, 2) or ''
  end

  local function share(c, taker, body)
    local priority, _, attemptsMax, visibleAt, ownMs, flags = unpackFields(BODY_SHARED_FORMAT, body, BODY_SHARED_AT)
    local ends = leaseEnd(c, ownMs, taker.askedMs)
    taker.shared = sub(body, BODY_SHARED_AT, BODY_SIZE)
    taker.isPlain = band(flags, HAS_METADATA) == 0
    taker.head = pack(
      STATE_HEAD_FORMAT, 'r', '-', flags, 1, attemptsMax, 2, priority, visibleAt, ownMs, ends, c.now, -1, -1, taker.size
    )
    taker.endsText = format('%d', ends)
    comesDue(c.names, ends)
  end

  -- The state record of a message that is leased for the first time, and its number; nothing for one that stands in other indexes.
  local function firstLease(c, taker, body)
    if not taker.shared or find(body, taker.shared, BODY_SHARED_AT, true) ~= BODY_SHARED_AT then share(c, taker, body) end
    if not taker.isPlain then return nil end
    local seq = sub(body, 1, 8)
    local high, low = unpackFields('>I4I4', seq)
    if high ~= taker.high then taker.high, taker.beginning = high, taker.token .. format('.%d.', high) end
    local lowText = format('%d', low)
    local length = #taker.beginning + #lowText
    if length ~= taker.length then taker.length, taker.lengths = length, pack('>I2I2', length, #taker.event) end
    return taker.head .. seq .. taker.lengths .. taker.beginning .. lowText .. taker.event, seq
  end

  -- What is found in the index without a body is told, and passed over.
  local function readWaiting(c, members)
    local ids = {}
    for k = 1, #members do ids[k] = sub(members[k], WAITING_KEY_AT) end
    local bodies, states = readMany(c.names[':m'], ids), readMany(c.names[':s'], ids)
    for k = #ids, 1, -1 do
      if not bodies[k] then
        damage(c, ids[k])
        remove(ids, k)
        remove(bodies, k)
        remove(states, k)
      end
    end
    return ids, bodies, states
  end

  -- Shares what has left the index out among the takers, in their order. Answers an answer for each and how many were leased.
  local function leaseMembers(c, members, takers)
    local ids, bodies, states = readWaiting(c, members)
    local answers, written, running, requests, from = {}, {}, {}, {}, 1
    for t = 1, #takers do
      local taker, answer, taken = takers[t], {}, {}
      local to = min(#ids, from + taker.count - 1)
      prepare(c, taker, to - from + 1)
      for k = from, to do
        local id, body = ids[k], bodies[k]
        local state, seq
        if not states[k] and not c.wantsEvents then state, seq = firstLease(c, taker, body) end
        if state then
          local n = #written
          written[n + 1], written[n + 2] = id, state
          running[n + 1], running[n + 2] = taker.endsText, seq .. id
          n = #answer
          answer[n + 1], answer[n + 2], answer[n + 3] = id, body, state
        else
          c.records[id], c.bodies[id] = states[k] and recordOfState(id, states[k]) or recordOfBody(id, body), body
          leaseOne(c, c.records[id], taker.askedMs, taker.token, taker.size)
          appendRecord(c, answer, id)
        end
        taken[#taken + 1] = id
      end
      given(requests, taker.token, taken)
      answers[t], from = answer, to + 1
    end
    writeMany('HSET', c.names[':s'], written)
    writeMany('ZADD', c.names[':r'], running)
    writeMany('HSET', c.names[':t'], requests)
    -- What was taken has left its index already.
    c.sets[':p'] = nil
    return answers, #ids
  end

  -- Two commands for any number, and no scores, which the server prints slowly.
  local function takeBest(c, wanted)
    local members = call('ZRANGE', c.names[':p'], '0', format('%d', wanted - 1))
    if members[1] then call('ZREMRANGEBYRANK', c.names[':p'], '0', format('%d', #members - 1)) end
    return members
  end

  -- The state record of one message alone that is leased for the first time under the token as it is, written; nothing for one that stands in
  -- other indexes or has run before. Straight on, because every table and every word of code counts for a call that does so little.
  leaseFresh = function(names, cfg, now, id, body, token, askedMs)
    local seq, priority, _, attemptsMax, visibleAt, ownMs, flags = unpackFields(BODY_FORMAT, body)
    if band(flags, HAS_METADATA) ~= 0 then return nil end
    local ends = now + (askedMs or (ownMs >= 0 and ownMs) or cfg.leaseMs)
    local event = cfg.history and pack(EVENT_FORMAT, 'p', 'r', now, 1, 2) or ''
    local state = pack(
      STATE_FORMAT, 'r', '-', flags, 1, attemptsMax, 2, priority, visibleAt, ownMs, ends, now, -1, -1, 1, seq, #token, #event
    ) .. token .. event
    if call('HSETNX', names[':s'], id, state) == 0 then return nil end
    comesDue(names, ends)
    call('ZADD', names[':r'], format('%d', ends), seq .. id)
    return state
  end

  -- Whatever it is.
  leaseMember = function(c, member, askedMs, token)
    return leaseMembers(c, { member }, { newTaker(1, askedMs, token) })[1]
  end

  local function leaseAlone(c, askedMs, token)
    local names = c.names
    local member = call('ZPOPMIN', names[':p'], '1')[1]
    if not member then return NONE end
    local id = sub(member, WAITING_KEY_AT)
    local body = not c.wantsEvents and call('HGET', names[':m'], id)
    local state = body and leaseFresh(names, c.cfg, c.now, id, body, token, askedMs)
    if not state then return leaseMember(c, member, askedMs, token) end
    call('HSET', names[':t'], requestOf(token), '1' .. id)
    return { id, body, state }
  end

  -- Nothing where the rate limit lets none through.
  handOut = function(c, count, askedMs, token)
    local wanted = min(count, allowance(c))
    if wanted <= 0 then return NONE end
    if c.cfg.exclusiveKey then return leaseAll(c, bestOfValues(c, wanted), askedMs, token) end
    if wanted == 1 and c.cfg.rateCount == 0 then return leaseAlone(c, askedMs, token) end
    local members = takeBest(c, wanted)
    if not members[1] then return NONE end
    local answers, leased = leaseMembers(c, members, { newTaker(wanted, askedMs, token) })
    grant(c, leased)
    return answers[1]
  end

  -- An answer for each taker. Whoever comes after one that has found the queue empty is told so without a look.
  handOutTogether = function(c, takers)
    local wanted, answers = 0, {}
    for k = 1, #takers do wanted = wanted + takers[k].count end
    if wanted <= WALK_MAX and not c.cfg.exclusiveKey and c.cfg.rateCount == 0 then
      local members = takeBest(c, wanted)
      if members[1] then answers = leaseMembers(c, members, takers) end
      return answers
    end
    for k = 1, #takers do
      answers[k] = handOut(c, takers[k].count, takers[k].askedMs, takers[k].token)
      if answers[k] == NONE then return answers end
      -- The next one reads the indexes.
      flush(c)
    end
    return answers
  end
end
