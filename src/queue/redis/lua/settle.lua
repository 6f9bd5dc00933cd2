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

local function completeOne(c, r, result)
  finish(c, r, 'c', 'c', result ~= '' and sub(result, 2))
end

do
  local function extendOne(c, r, leaseMs)
    r[LEASE_UNTIL] = c.now + (tonumber(leaseMs) or (r[LEASE_MS] >= 0 and r[LEASE_MS]) or c.cfg.leaseMs)
    r[VERSION] = r[VERSION] + 1
    r[PACKED] = false
    put(c, ':r', plainMember(r), r[LEASE_UNTIL])
    record(c, r, 'r')
    c.dirty[r[KEY]] = 'state'
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
  settlement('fail', 4, 'f', failOne)
  settlement('release', 4, 'r', releaseOne)
end
