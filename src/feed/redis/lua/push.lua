-- Puts one post into many timelines: in front where it is the newest, at its place where it is not. A key without a timeline
-- stays as it is. Guarantees: once and in order in each; nothing at or below a floor; a timeline that is `slack` over is
-- trimmed and its floor raised. Stops before the (lateMax + 1)th insertion behind newer entries, the dear ones.
-- KEYS: timelines. ARGV: post, entriesMax, slack, lateMax.
-- Returns { entries written, late ones among them, keys done }.
local post, entriesMax, slack, lateMax = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not string.match(post, '^%d+$') or #post ~= 19 or not entriesMax or not slack or not lateMax then
  return redis.error_reply('ERR push: post, entriesMax, slack, lateMax')
end
-- As a rule a late entry is late by a few: these many are looked at first, then these; after that the place is searched for.
local NEAR = { { 0, 7 }, { 8, 39 } }
local lengthMax = entriesMax + slack + 1

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

-- Answers the length of the list, or nil when the post was there or is below the floor.
local function insertLate(key)
  local pivot
  for step = 1, #NEAR do
    local near = redis.call('LRANGE', key, NEAR[step][1], NEAR[step][2])
    for i = 1, #near do
      if isMarker(near[i]) or near[i] <= post then pivot = near[i]; break end
    end
    if pivot then break end
  end
  if not pivot then
    local length = redis.call('LLEN', key)
    pivot = redis.call('LINDEX', key, placeOf(key, length, post))
  end
  if pivot == post then return nil end
  if isMarker(pivot) then
    local marker = markerAt(key, -1)
    if not marker or not isAbove(post, marker.floor) then return nil end
  end
  return redis.call('LINSERT', key, 'BEFORE', pivot, post)
end

local written, late = 0, 0
for i = 1, #KEYS do
  local key = KEYS[i]
  local newest = redis.pcall('LINDEX', key, 0)
  local length
  if type(newest) == 'string' and newest ~= post then
    if not isMarker(newest) and newest < post then
      length = redis.call('LPUSHX', key, post)
    else
      if late == lateMax then return { written, late, i - 1 } end
      length = insertLate(key)
      if length and not isMarker(newest) then late = late + 1 end
    end
  end
  if length then
    written = written + 1
    if length > lengthMax then trim(key) end
  end
end
return { written, late, #KEYS }
