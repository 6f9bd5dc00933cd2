-- get, list, depth, oldest, glance: reads. All but depth and oldest show the stored state; those two count by the clock, so
-- they let what is due move first. Each walks a bounded number of messages in one call and says where to go on.
local WALK = 1000

-- get. keys: queue. args: id. answer: body and state record (empty for one nobody has touched), or nothing.
local function get(keys, args)
  local body = call('HGET', keys[2] .. ':m', args[1])
  if not body then return {} end
  return { body, call('HGET', keys[2] .. ':s', args[1]) or '' }
end
register('get', { 'no-writes' }, get)

-- Number of a member, as two halves that compare.
local function isPast(member, score, afterScore, afterHigh, afterLow)
  if score ~= afterScore then return score > afterScore end
  local high, low = unpackFields('>I4I4', member)
  return high > afterHigh or (high == afterHigh and low > afterLow)
end

-- Where all pending messages of a filter are found. In an exclusive queue some may be set aside from the index of the pair.
local function waitingSuffix(c, args, from)
  if c.cfg.exclusiveKey or #args < from then return ':p' end
  return rarest(c, args, from)
end

-- list. keys: queue. args: now, events, state (an ended one behind a dash: the newest first), limit, cursor (score and 8 bytes of number; empty at the start), pairs.
-- answer: the cursor behind what was walked (nothing at the end), then record key, body and state record of each.
local function list(keys, args)
  local c = open(keys[2], args)
  local newest = sub(args[3], 1, 1) == '-'
  local state, limit, answer = newest and sub(args[3], 2) or args[3], tonumber(args[4]), { false }
  local key = c.base .. (TERMINAL_KEY[state] or ':' .. state)
  local rank, score, high, low = 0, tonumber(args[5]), 0, 0
  if score then
    high, low = unpackFields('>I4I4', args[6])
    rank = newest and call('ZCOUNT', key, args[5], '+inf') or call('ZCOUNT', key, '-inf', '(' .. args[5])
  end
  local members
  if newest then
    -- The score of an ended message is its number: no two are equal, and the rank says all.
    members, score = call('ZRANGE', key, rank, rank + WALK - 1, 'REV', 'WITHSCORES'), nil
  else
    members = call('ZRANGE', key, rank, rank + WALK - 1, 'WITHSCORES')
  end
  local found, records = {}, {}
  for k = 1, #members, 2 do
    if members[k] ~= STAKE and (not score or isPast(members[k], tonumber(members[k + 1]), score, high, low)) then
      found[#found + 1] = sub(members[k], state == 'p' and WAITING_KEY_AT or PLAIN_KEY_AT)
      records[#records + 1] = k
    end
  end
  -- With a filter many may be passed over; without one no more are read than are wanted.
  local reads = #args > 6 and #found or min(#found, limit)
  local wanted = {}
  for k = 1, reads do wanted[k] = found[k] end
  load(c, wanted)
  local last = reads > 0 and records[reads] or #members - 1
  for k = 1, reads do
    local r = c.records[found[k]]
    if r and matches(c, r, args, 7) then
      local n = #answer
      answer[n + 1], answer[n + 2], answer[n + 3] = found[k], bodyOf(c, found[k]) or '', packed(r)
      if (n + 2) / 3 >= limit then
        last = records[k]
        break
      end
    end
  end
  if #members == 2 * WALK or (last > 0 and last < #members - 1) then
    answer[1] = members[last + 1] .. ' ' .. sub(members[last], 1, 8)
  end
  return { 0, answer }
end
register('list', { 'no-writes' }, list)

-- depth. keys: queue. args: now, events, pairs. again: 1 more is due, first. answer: now, invisible, pending, running; with
-- several pairs -1 for each: they are counted by count_matching.
local function depth(keys, args)
  local c = open(keys[2], args)
  local _, more = sweep(c, SWEEP_MAX)
  if more then return reply(c, 1, {}) end
  if #args == 2 then
    return reply(c, 0, {
      c.now, call('ZCARD', c.names[':i']), call('ZCARD', c.names[':p']), runningCount(c.names[':r']),
    })
  end
  if #args > 4 then return reply(c, 0, { c.now, -1, -1, -1 }) end
  local pair = args[3] .. '\0' .. args[4]
  local counts = call('HMGET', c.names[':n'], 'i' .. pair, 'r' .. pair, 'p' .. pair)
  local pending = c.cfg.exclusiveKey and tonumber(counts[3] or 0) or call('ZCARD', c.base .. ':k:' .. pair)
  return reply(c, 0, { c.now, tonumber(counts[1] or 0), pending, tonumber(counts[2] or 0) })
end
register('depth', { 'allow-oom' }, depth)

-- count_matching: one step of a depth by several pairs. keys: queue. args: now, events, state, rank, pairs.
-- answer: how many matched, how many were walked (fewer than WALK at the end).
local function countMatching(keys, args)
  local c = open(keys[2], args)
  local state, rank = args[3], tonumber(args[4])
  local suffix = state == 'p' and waitingSuffix(c, args, 5) or ':' .. state
  local members, walked, matched = call('ZRANGE', c.base .. suffix, rank, rank + WALK - 1), {}, 0
  for k = 1, #members do walked[k] = sub(members[k], state == 'p' and WAITING_KEY_AT or PLAIN_KEY_AT) end
  load(c, walked)
  for k = 1, #walked do
    local r = c.records[walked[k]]
    if r and matches(c, r, args, 5) then matched = matched + 1 end
  end
  return { 0, { matched, #members } }
end
register('count_matching', { 'no-writes' }, countMatching)

-- oldest: one step. keys: queue. args: now, events, rank, pairs. again: 1 more is due, first.
-- answer: now, visible at (-1 for none) and id of the message that has waited longest among those walked, how many those were.
local function oldest(keys, args)
  local c = open(keys[2], args)
  local rank = tonumber(args[3])
  if rank == 0 then
    local _, more = sweep(c, SWEEP_MAX)
    if more then return reply(c, 1, {}) end
  end
  local suffix = waitingSuffix(c, args, 4)
  local members = call('ZRANGE', c.base .. suffix, rank, rank + WALK - 1)
  local looks, walked, busy = #args > 5 or c.cfg.exclusiveKey, {}, {}
  if looks then
    for k = 1, #members do walked[k] = sub(members[k], WAITING_KEY_AT) end
    load(c, walked)
    if c.cfg.exclusiveKey then busy = busyValues(c, walked) end
  end
  local visibleAt, id = -1, ''
  for k = 1, #members do
    local at = unpackFields('>I6', members[k], 9)
    if visibleAt < 0 or at < visibleAt then
      local r = looks and c.records[walked[k]]
      if not looks or (r and matches(c, r, args, 4) and not busy[valueOf(c, r) or '']) then
        visibleAt, id = at, sub(members[k], WAITING_KEY_AT)
      end
    end
  end
  return reply(c, 0, { c.now, visibleAt, id, #members })
end
register('oldest', { 'allow-oom' }, oldest)

-- glance: for each queue whether something waits that may be dequeued, and when something is due next. keys: each
-- queue. args: now. answer: the time, then for each: 1 or 0, unix milliseconds of the next due message and of the next that is
-- to be collected (0 when follow-ups wait), -1 for none.
local function glance(keys, args)
  local time = call('TIME')
  local answer = { tonumber(args[1]) or time[1] * 1000 + floor(time[2] / 1000) }
  for k = 2, #keys, 2 do
    local base = keys[k]
    local cfg = configurationOf(call('HGET', base .. ':q', 'fast'))
    local invisible = call('ZRANGE', base .. ':i', '0', '0', 'WITHSCORES')
    local running = call('ZRANGE', base .. ':r', '0', '0', 'WITHSCORES')
    local ending = call('ZRANGE', base .. ':x', '0', '0', 'WITHSCORES')
    local due = min(tonumber(invisible[2]) or huge, running[1] ~= STAKE and tonumber(running[2]) or huge)
    local waits = call('ZCARD', base .. (cfg.exclusiveKey and ':h' or ':p')) > 0
    local n = #answer
    answer[n + 1] = not cfg.dequeueBlocked and (waits or due <= answer[1]) and 1 or 0
    answer[n + 2] = due == huge and -1 or due
    answer[n + 3] = call('EXISTS', base .. ':f') == 1 and 0 or tonumber(ending[2]) or -1
  end
  return answer
end
register('glance', { 'no-writes' }, glance)
