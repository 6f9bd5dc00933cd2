-- enqueue_one, dequeue_one, complete_one: what enqueue, dequeue and complete do, for one message of a caller who wants no events.
-- Guarantee: the same as of theirs. What is not plain (an exclusive queue, a rate limit, a message with metadata, a repeat, something that
-- has come due) goes their way; whatever has been written by then is what they would write, or is taken back.
-- For calls that do so little every argument, table and word of code counts. So there are few arguments, none of the context that gathers
-- what is to be written, and an answer is one string.
-- keys: queue. args (now: unix milliseconds, only where it is not the server's clock):
--   enqueue_one: id, head and payload as in a body, now
--   dequeue_one: request id, token, lease ms or '' (not needed where no now follows), now
--   complete_one: id, token, `r` and the result or '' (not needed where no now follows), now
-- answer: that of enqueue, dequeue or complete; dequeue_one: nothing, or in one string state record, id, NUL and body.
local function enqueueOne(keys, args)
  local base, id, tail, now = keys[2], args[1], args[2], clockOf(args[3])
  local names = namesOf(base)
  local fields = call('HMGET', names[':q'], 'fast', 'seq')
  local cfg, last = configurationOf(fields[1]), fields[2]
  if last and cfg.delayMs == 0 and not (cfg.exclusiveKey or cfg.enqueueBlocked) then
    local high, low = unpackFields('>I4I4', last)
    low = low + 1
    if low == SEQ_HALF then high, low = high + 1, 0 end
    local seq = packSeq(high, low)
    local body = seq .. pack(BODY_SHARED_FORMAT, now, now, cfg.attemptsMax, now, -1, cfg.history and HISTORY_FROM_START or 0) .. tail
    if call('HSETNX', names[':m'], id, body) == 1 then
      call('HSET', names[':q'], 'seq', seq)
      call('ZADD', names[':p'], format('%d', now), seq .. pack('>I6', max(0, now)) .. id)
      -- Who waits has been told of what is already there; with a head the new one may be another's.
      if byte(tail) ~= 10 or call('ZCARD', names[':p']) == 1 then call('PUBLISH', names[':hint'], '') end
      return 'np'
    end
  end
  local c = open(base, { format('%d', now), '0' }, false, true)
  local answers, isNew = enqueueAll(c, { args[1], ',,,,0', args[2] }, 1)
  return reply(c, isNew and 1 or 0, answers)
end
register('enqueue_one', {}, enqueueOne)

local function dequeueAsAll(base, args, now)
  local c = open(base, { format('%d', now), '0' })
  return reply(c, dequeueFrom(c, { '', '0', '1', args[3] or '', args[2], '0', '', '' }))
end

-- Whether the request has been given something before is told by the write that keeps what it is given: a repeat is rare.
local function dequeueOne(keys, args)
  local base, request, now = keys[2], args[1], clockOf(args[4])
  local names = namesOf(base)
  local cfg = configurationOf(call('HGET', names[':q'], 'fast'))
  if not isSwept(names, now) or cfg.exclusiveKey or cfg.dequeueBlocked or cfg.rateCount ~= 0 then
    return dequeueAsAll(base, args, now)
  end
  local member = call('ZRANGE', names[':p'], '0', '0')[1]
  if not member then return call('HEXISTS', names[':t'], request) == 1 and dequeueAsAll(base, args, now) end
  local id = sub(member, WAITING_KEY_AT)
  if call('HSETNX', names[':t'], request, '1' .. id) == 0 then return dequeueAsAll(base, args, now) end
  call('ZREMRANGEBYRANK', names[':p'], '0', '0')
  local askedMs, body = tonumber(args[3]), call('HGET', names[':m'], id)
  local state = body and leaseFresh(names, cfg, now, id, body, args[2], askedMs)
  if state then return state .. id .. '\0' .. body end
  if not body then call('HDEL', names[':t'], request) end
  local c = open(base, { format('%d', now), '0' })
  return reply(c, 0, leaseMember(c, member, askedMs, args[2]))
end
register('dequeue_one', { 'allow-oom' }, dequeueOne)

local function completeOneAlone(keys, args)
  local base, id, token, result, now = keys[2], args[1], args[2], args[3] or '', clockOf(args[4])
  local names = namesOf(base)
  local cfg = configurationOf(call('HGET', names[':q'], 'fast'))
  local answer = cfg.retentionMs.c > 0 and not cfg.exclusiveKey and completeAlone(names, cfg, now, id, token, result)
  if answer then return answer end
  local c = open(base, { format('%d', now), '0' })
  return reply(c, 0, completeAll(c, { id, token, result }, 1, 3))
end
register('complete_one', { 'allow-oom' }, completeOneAlone)
