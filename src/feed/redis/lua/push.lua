-- Puts posts into many timelines: in front where they are the newest, at their places where they are not. A key without a
-- timeline stays as it is. Guarantees: once and in order in each; nothing at or below a floor; a timeline that is `slack` over
-- is trimmed and its floor raised. Stops before the key with the (lateMax + 1)th insertion behind newer entries, the dear ones,
-- unless it is the first with any.
-- KEYS: timelines, those that take the same posts beside each other. ARGV: entriesMax, slack, lateMax, then for each such group
-- the number of its keys, the number of its posts, and these, oldest first.
-- Returns { keys done, then for each post of each group: entries written, late ones among them }.
local entriesMax, slack, lateMax = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not entriesMax or not slack or not lateMax then return redis.error_reply('ERR push: entriesMax, slack, lateMax') end
local groups, grouped, at = {}, 0, 4
while at <= #ARGV do
  local group = { keys = tonumber(ARGV[at]), from = at + 2, till = at + 1 + (tonumber(ARGV[at + 1]) or 0) }
  if not group.keys or group.till < group.from then return redis.error_reply('ERR push: a group of keys and posts') end
  for i = group.from, group.till do
    local post = ARGV[i]
    if not post or #post ~= 19 or not string.match(post, '^%d+$') or (i > group.from and post <= ARGV[i - 1]) then
      return redis.error_reply('ERR push: posts, oldest first')
    end
  end
  groups[#groups + 1] = group
  grouped = grouped + group.keys
  at = group.till + 1
end
if grouped ~= #KEYS then return redis.error_reply('ERR push: as many keys as the groups have') end
-- As a rule a late entry is late by a few: these many are looked at first, then these; after that the place is searched for.
local NEAR = { 8, 40 }
local lengthMax = entriesMax + slack + 1
local written, late = {}, {}
for i = 4, #ARGV do written[i], late[i] = 0, 0 end

local function trim(key)
  local marker = markerAt(key, -1)
  if not marker then
    -- A list of somebody else's, which nobody reads.
    redis.call('DEL', key)
    return
  end
  marker.floor = redis.call('LINDEX', key, entriesMax)
  redis.call('LTRIM', key, 0, entriesMax - 1)
  redis.call('RPUSH', key, markerText(marker))
end

-- The posts of ARGV from..till, newest first, each before the first element that is not newer. Answers the length of the list, or
-- nil when nothing was put in, and how many were.
local function insertLate(key, from, till)
  local near, looked, put, length = {}, 0, 0, nil
  local place = 1
  for i = till, from, -1 do
    local post = ARGV[i]
    while true do
      local element = near[place]
      if element then
        if isMarker(element) or element <= post then break end
        place = place + 1
      elseif looked < #NEAR then
        -- What was put in stands in front of what has not been looked at.
        local more = redis.call('LRANGE', key, #near + put, NEAR[looked + 1] - 1 + put)
        looked = looked + 1
        if looked == 1 then near = more else for j = 1, #more do near[#near + 1] = more[j] end end
      else
        break
      end
    end
    local pivot = near[place] or redis.call('LINDEX', key, placeOf(key, redis.call('LLEN', key), post))
    local taken = pivot ~= post
    if taken and isMarker(pivot) then
      local marker = markerAt(key, -1)
      taken = marker and isAbove(post, marker.floor)
    end
    if taken then
      length = redis.call('LINSERT', key, 'BEFORE', pivot, post)
      written[i], late[i], put = written[i] + 1, late[i] + 1, put + 1
    end
  end
  return length, put
end

-- The posts of ARGV from..till that are not in front of all, into a timeline that begins with `newest`. Answers the length of the
-- list and the first post that is in front, or nothing where this key is for another call.
local lateSoFar = 0
local function putBehind(key, newest, from, till)
  local first, length = from, nil
  if isMarker(newest) then
    local marker = markerAt(key, -1)
    while first <= till and not (marker and isAbove(ARGV[first], marker.floor)) do first = first + 1 end
    return nil, first
  end
  while first <= till and ARGV[first] <= newest do first = first + 1 end
  local lateTill = first - 1
  if ARGV[lateTill] == newest then lateTill = lateTill - 1 end
  if lateTill >= from then
    if lateSoFar > 0 and lateSoFar + lateTill - from + 1 > lateMax then return nil, nil end
    local count
    length, count = insertLate(key, from, lateTill)
    lateSoFar = lateSoFar + count
  end
  return length, first
end

local call, pcall, byte = redis.call, redis.pcall, string.byte
local done, stopped = 0, false
for g = 1, #groups do
  local from, till = groups[g].from, groups[g].till
  local oldest = ARGV[from]
  for i = done + 1, done + groups[g].keys do
    local key = KEYS[i]
    -- As text: to turn a number into one costs the server as much as the rest of the command.
    local newest = pcall('LINDEX', key, '0')
    if type(newest) == 'string' then
      local first, length = from, nil
      -- A marker begins with #.
      if newest >= oldest or byte(newest) == 35 then length, first = putBehind(key, newest, from, till) end
      if not first then
        stopped = true
        break
      end
      if first == till then
        length = call('LPUSHX', key, ARGV[first])
        written[first] = written[first] + 1
      elseif first < till then
        length = call('LPUSHX', key, unpack(ARGV, first, till))
        for j = first, till do written[j] = written[j] + 1 end
      end
      if length and length > lengthMax then trim(key) end
    end
    done = i
  end
  if stopped then break end
end
local answer = { done }
for g = 1, #groups do
  for i = groups[g].from, groups[g].till do
    answer[#answer + 1] = written[i]
    answer[#answer + 1] = late[i]
  end
end
return answer
