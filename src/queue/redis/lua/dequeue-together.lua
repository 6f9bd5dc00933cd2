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
  local answers, takers, places = {}, {}, {}
  local function answerTo(k, answer)
    local n = #answers
    answers[n + 1], answers[n + 2] = k, answer
  end
  for k = 1, #requests do
    local held, at = before[k] and replay(c, requests[k]), 1 + 3 * k
    if held then
      answerTo(k, held)
    else
      takers[#takers + 1] = newTaker(tonumber(args[at]), tonumber(args[at + 1]), args[at + 2])
      places[#takers] = k
    end
  end
  if c.cfg.dequeueBlocked or not takers[1] then return reply(c, 0, answers) end
  local found = handOutTogether(c, takers)
  for k = 1, #found do
    if found[k][1] then answerTo(places[k], found[k]) end
  end
  return reply(c, 0, answers)
end
register('dequeue_together', { 'allow-oom' }, dequeueTogether)
