-- heads: what a shard of a queue has to offer, before any is taken.
-- Guarantee: what is due or expired has been looked at first. Reads at most as many members as are asked for, and at most 1,000.
-- keys: queue (the shard). args: now, events, request id, how many, pairs of the filter.
-- answer: 1 when leases of the request still run here, then the priorities of the best, in order (of the rarest pair of a filter).
-- again: 1 more is due, first.
local function heads(keys, args)
  local c = open(keys[2], args)
  local _, more = sweep(c, SWEEP_MAX)
  if more then return reply(c, 1, {}) end
  local answer = { replay(c, args[3]) and 1 or 0 }
  if c.cfg.dequeueBlocked then return reply(c, 0, answer) end
  local suffix = #args > 4 and rarest(c, args, 5) or (c.cfg.exclusiveKey and ':h' or ':p')
  local members = call('ZRANGE', c.base .. suffix, 0, min(WALK_MAX, tonumber(args[4])) - 1, 'WITHSCORES')
  for k = 2, #members, 2 do answer[#answer + 1] = members[k] end
  return reply(c, 0, answer)
end
register('heads', { 'allow-oom' }, heads)
