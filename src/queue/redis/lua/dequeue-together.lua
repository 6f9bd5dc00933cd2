-- dequeue_together: several dequeues without a filter in one step, each as if it came alone and in their order. Whoever comes after one
-- that has found the queue empty is told so without a look.
-- keys: queue. args: now, events, 1 to go on although more is due, then count, lease ms or '' and token of each; no two have one
-- request id. answer: the place of a request in the order (from 1) and what dequeue answers it; of those that get something only.
local function dequeueTogether(keys, args)
  local c = open(keys[2], args)
  local _, more = sweep(c, SWEEP_MAX)
  if more and args[3] ~= '1' then return reply(c, 1, {}) end
  local requests = {}
  for at = 6, #args, 3 do requests[#requests + 1] = requestOf(args[at]) end
  local before = readMany(c.names[':t'], requests)
  local answers, isEmpty = {}, c.cfg.dequeueBlocked
  for k = 1, #requests do
    local answer = before[k] and replay(c, requests[k])
    if not answer and not isEmpty then
      local at = 1 + 3 * k
      answer = handOut(c, tonumber(args[at]), tonumber(args[at + 1]), args[at + 2])
      isEmpty = answer == NONE
      -- The next one reads the indexes.
      flush(c)
    end
    if answer and answer[1] then
      local n = #answers
      answers[n + 1], answers[n + 2] = k, answer
    end
  end
  return reply(c, 0, answers)
end
register('dequeue_together', { 'allow-oom' }, dequeueTogether)
