-- Moves of one message from state to state: out of the indexes of the old state, into those of the new one, its version up
-- by one, an entry in its history and an event.
local function asideOf(pair, value)
  return ':y:' .. pair .. '\0' .. value
end

local function displace(c, r)
  local state, metadata = r[STATE], metadataOf(c, r)
  if state == 'p' then
    local member, value = waitingMember(r), valueOf(c, r)
    put(c, ':p', member, false)
    for k = 1, metadata and #metadata or 0, 2 do
      local pair = metadata[k] .. '\0' .. metadata[k + 1]
      put(c, ':k:' .. pair, member, false)
      if value then
        put(c, asideOf(pair, value), member, false)
        count(c, 'p' .. pair, -1)
      end
    end
    if value then
      put(c, ':w:' .. value, member, false)
      touch(c, value)
    elseif c.cfg.exclusiveKey then
      put(c, ':h', member, false)
    end
    return
  end
  if state == 'i' or state == 'r' then
    put(c, state == 'i' and ':i' or ':r', plainMember(r), false)
    for k = 1, metadata and #metadata or 0, 2 do count(c, state .. metadata[k] .. '\0' .. metadata[k + 1], -1) end
  else
    put(c, TERMINAL_KEY[state], plainMember(r), false)
  end
  if state == 'r' then
    local value = valueOf(c, r)
    if value then touch(c, value, nil, true) end
    endOfLease(c, r[TOKEN], r[REQUEST_SIZE])
  end
end

local function place(c, r)
  local state, metadata = r[STATE], metadataOf(c, r)
  if state == 'p' then
    local member, value, priority = waitingMember(r), valueOf(c, r), r[PRIORITY]
    put(c, ':p', member, priority)
    for k = 1, metadata and #metadata or 0, 2 do
      local pair = metadata[k] .. '\0' .. metadata[k + 1]
      put(c, ':k:' .. pair, member, priority)
      if value then count(c, 'p' .. pair, 1) end
    end
    if value then
      put(c, ':w:' .. value, member, priority)
      touch(c, value)
    elseif c.cfg.exclusiveKey then
      put(c, ':h', member, priority)
    end
    c.hint = true
  elseif state == 'i' or state == 'r' then
    put(c, state == 'i' and ':i' or ':r', plainMember(r), state == 'i' and r[VISIBLE_AT] or r[LEASE_UNTIL])
    for k = 1, metadata and #metadata or 0, 2 do count(c, state .. metadata[k] .. '\0' .. metadata[k + 1], 1) end
    local value = state == 'r' and valueOf(c, r)
    if value then
      touch(c, value, r[KEY])
    end
  else
    put(c, TERMINAL_KEY[state], plainMember(r), seqScore(r[SEQ]))
  end
  if c.cfg.exclusiveKey and state ~= 'r' then c.hint = true end
end

local function record(c, r, from)
  if not c.wantsEvents and not c.cfg.history then return end
  local event = pack(EVENT_FORMAT, from, r[STATE], c.now, r[ATTEMPTS], r[VERSION])
  if c.cfg.history then
    r[HISTORY] = r[HISTORY] .. event
    if #r[HISTORY] > EVENTS_MAX * EVENT_SIZE then r[HISTORY] = sub(r[HISTORY], -EVENTS_MAX * EVENT_SIZE) end
  end
  if c.wantsEvents then
    local body = bodyOf(c, r[KEY])
    tellEvent(c, r[KEY], event .. r[SEQ], body and headOf(body) or '')
  end
end

-- The second half of a move: the caller has displaced the record and set its new state.
local function moved(c, r, from)
  r[VERSION] = r[VERSION] + 1
  r[PACKED] = false
  place(c, r)
  record(c, r, from)
  local dirty = c.dirty[r[KEY]]
  c.dirty[r[KEY]] = (dirty == 'all' or dirty == 'body') and 'all' or 'state'
end

-- Back among those that wait, at once or after a delay.
local function giveBack(c, r, delayMs, ended, refund)
  local from = r[STATE]
  displace(c, r)
  r[STATE] = delayMs > 0 and 'i' or 'p'
  r[VISIBLE_AT] = c.now + delayMs
  r[LEASE_UNTIL] = -1
  r[ENDED] = ended
  if refund then r[ATTEMPTS] = r[ATTEMPTS] - 1 end
  moved(c, r, from)
end

local function forget(c, key)
  c.dirty[key] = 'forgotten'
  c.records[key] = false
  c.bodies[key] = false
end

-- Gives the record another key, which frees its id. The body goes along while the message can still be listed.
local function rekey(c, r, keepBody)
  local old = r[KEY]
  local body = keepBody and bodyOf(c, old)
  forget(c, old)
  r[KEY] = old .. '\0' .. (r[TOKEN] ~= '' and r[TOKEN] or r[SEQ])
  c.records[r[KEY]] = r
  c.bodies[r[KEY]] = body or false
  c.dirty[r[KEY]] = body and 'all' or 'state'
end

-- The end of a message's retention: forgotten, but for the token where it is too early for that.
local function collect(c, r)
  local tokenUntil = r[FINISHED_AT] + SETTLED_TOKEN_MS
  put(c, TERMINAL_KEY[r[STATE]], plainMember(r), false)
  if r[TOKEN] == '' or tokenUntil <= c.now then return forget(c, r[KEY]) end
  if find(r[KEY], '\0', 1, true) then
    c.bodies[r[KEY]] = false
    c.dirty[r[KEY]] = 'token'
  else
    rekey(c, r, false)
  end
  r[FLAGS] = band(bor(r[FLAGS], HIDDEN), 255 - HAS_METADATA - HAS_TEXT)
  r[HISTORY], r[TEXT], r[METADATA] = '', '', false
  r[EXPIRES_AT], r[PACKED] = tokenUntil, false
  expiresAt(c, r[KEY], tokenUntil)
end

local function finish(c, r, state, ended, text)
  local from, retentionMs = r[STATE], c.cfg.retentionMs[state]
  displace(c, r)
  r[STATE] = state
  r[ENDED] = ended
  r[LEASE_UNTIL] = -1
  r[FINISHED_AT] = c.now
  r[EXPIRES_AT] = c.now + retentionMs
  if text ~= nil then setText(r, text) end
  moved(c, r, from)
  if band(r[FLAGS], UNIQUE) ~= 0 then
    put(c, TERMINAL_KEY[state], plainMember(r), false)
    rekey(c, r, true)
    put(c, TERMINAL_KEY[state], plainMember(r), seqScore(r[SEQ]))
  end
  if retentionMs == 0 then collect(c, r) else expiresAt(c, r[KEY], r[EXPIRES_AT]) end
end

local function expire(c, r)
  if r[ATTEMPTS] < r[ATTEMPTS_MAX] then return giveBack(c, r, 0, 'e', false) end
  finish(c, r, 'e', 'e', 'lease expired on the last attempt')
end

-- Members of a set whose score has come, at most `limit`, as record keys; the damaged ones are taken out and told. With none, when
-- the first one comes.
local function dueKeys(c, suffix, limit)
  local head = call('ZRANGE', c.names[suffix], '0', '0', 'WITHSCORES')
  if not head[1] or head[1] == STAKE then return NONE, nil, huge end
  local first = tonumber(head[2])
  if first > c.now then return NONE, nil, first end
  local members = call('ZRANGE', c.base .. suffix, '-inf', format('%d', c.now), 'BYSCORE', 'LIMIT', '0', limit)
  local keys, sound = {}, {}
  for k = 1, #members do keys[k] = sub(members[k], PLAIN_KEY_AT) end
  load(c, keys)
  for k = 1, #keys do
    if c.records[keys[k]] then
      sound[#sound + 1] = keys[k]
    else
      put(c, suffix, members[k], false)
      damage(c, keys[k])
    end
  end
  return sound, #members
end

-- What became due: invisible messages wait, expired leases go back or end. At most `limit` of each, the most overdue
-- first. Answers how many moved and whether there may be more. Two looks at a set are a third of an empty dequeue, so nobody looks
-- before something comes due; but another version of this library may have written, or another server before a failover or a move
-- of the slot, and therefore after LOOK_MS somebody does.
local LOOK_MS = 20

local function isSwept(names, now)
  return now < names.dueAt and now >= names.lookedAt and now - names.lookedAt < LOOK_MS
end

local function sweep(c, limit)
  local names, now = c.names, c.now
  if isSwept(names, now) then return 0, false end
  local due, found, dueFrom = dueKeys(c, ':i', limit)
  for k = 1, #due do
    local r = c.records[due[k]]
    displace(c, r)
    r[STATE] = 'p'
    moved(c, r, 'i')
  end
  local expired, foundExpired, expiredFrom = dueKeys(c, ':r', limit)
  if dueFrom and expiredFrom then
    names.dueAt, names.lookedAt = min(dueFrom, expiredFrom), now
  else
    names.dueAt = 0
  end
  for k = 1, #expired do expire(c, c.records[expired[k]]) end
  if not found and not foundExpired then return 0, false end
  flush(c)
  return (found or 0) + (foundExpired or 0), found == limit or foundExpired == limit
end

-- The record under this lease, if its holder may still change it; a last attempt that has run out ends here.
local function heldBy(c, id, token)
  local r = c.records[id]
  if not r or r[STATE] ~= 'r' or r[TOKEN] ~= token then return nil end
  if r[ATTEMPTS] >= r[ATTEMPTS_MAX] and r[LEASE_UNTIL] <= c.now then
    expire(c, r)
    return nil
  end
  return r
end
