-- complete_dequeue: complete and then dequeue of one queue in one round trip; what the completions free is dequeueable.
-- keys: queue. args: those of dequeue without cursor and filter (now, events, count, lease ms, token, 1), then those of
-- complete. answer: the answer of complete, then that of dequeue. again: as in dequeue; the completions stand.
local function completeDequeue(keys, args)
  local c = open(keys[2], args)
  local completed = completeAll(c, args, 7, #args)
  flush(c)
  local again, messages = dequeueFrom(c, { args[1], args[2], args[3], args[4], args[5], args[6], '', '' })
  return reply(c, again, { completed, messages })
end
register('complete_dequeue', { 'allow-oom' }, completeDequeue)

-- complete_enqueue: completes one lease and enqueues follow-ups in the same step, all of it or nothing.
-- keys: queue, then each queue with follow-ups (in one slot). args: now, events, id, token, result as in complete,
-- then for each of those queues: how many messages, and three arguments for each as in enqueue.
-- answer: that of complete, and the events of each queue; or alone `b` / `m`, the number of the queue and of the message that it
-- would refuse, and then nothing changed.
local function refusalOf(c, tail)
  if c.cfg.enqueueBlocked then return 'b' end
  local key = c.cfg.exclusiveKey
  if not key then return nil end
  local head = sub(tail, 1, find(tail, '\n', 1, true) - 1)
  local metadata = head ~= '' and decodeJson(head)[1] or {}
  for k = 1, #metadata, 2 do
    if metadata[k] == key then return nil end
  end
  return 'm'
end

local function followUps(keys, args)
  local queues, at = {}, 6
  for k = 4, #keys, 2 do
    local n = tonumber(args[at])
    queues[#queues + 1] = { base = keys[k], from = at + 1, to = at + 3 * n }
    at = at + 1 + 3 * n
  end
  return queues
end

local function completeEnqueue(keys, args)
  local queues = followUps(keys, args)
  local c = open(keys[2], args)
  load(c, { args[3] })
  local held = heldBy(c, args[3], args[4]) ~= nil
  -- Whoever holds it no longer gets the answer of before, whatever the queues of the follow-ups say by now.
  for k = 1, held and #queues or 0 do
    local target = open(queues[k].base, args, true)
    for at = queues[k].from, queues[k].to, 3 do
      local refused = refusalOf(target, args[at + 2])
      if refused then return { 0, { refused .. format('%d,%d', k, (at - queues[k].from) / 3) } } end
    end
  end
  local answer = settleAll(c, args, 3, 5, 3, 'c', completeOne)
  local followed = {}
  flush(c)
  if held and byte(answer) == 100 then
    for k = 1, #queues do
      local target, own = open(queues[k].base, args, true, true), { args[1], args[2] }
      for at = queues[k].from, queues[k].to do own[#own + 1] = args[at] end
      enqueueAll(target, own, 3)
      flush(target)
      publishHint(target)
      followed[k] = target.events
    end
  end
  return reply(c, 0, { answer, followed })
end
register('complete_enqueue', {}, completeEnqueue)
