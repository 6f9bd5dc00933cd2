-- What all scripts share. A timeline is a list of ids of posts, 19 digits each (so they compare as text), newest first; its last
-- element is the marker `#<token>.<version>.<floor>`: the build it belongs to, a count of the changes that were no push, and
-- the id below which nothing is known to be in it. A key without a marker at its end, of whatever type, is no timeline.
local ROWS_MAX = 500

local function markerAt(key, index)
  local marker = redis.pcall('LINDEX', key, index)
  if type(marker) ~= 'string' then return nil end
  local token, version, floor = string.match(marker, '^#(%d+)%.(%d+)%.(%d+)$')
  return token and { token = token, version = tonumber(version), floor = floor }
end

local function markerText(marker)
  return '#' .. marker.token .. '.' .. string.format('%.0f', marker.version) .. '.' .. marker.floor
end

-- Digits as numbers of any size.
local function isAbove(one, other)
  if #one ~= #other then return #one > #other end
  return one > other
end

local function isMarker(element) return string.byte(element) == 35 end

-- Index of the first element that is not newer than `post`; the marker is older than all.
local function placeOf(key, length, post)
  local low, high = 0, length - 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local element = redis.call('LINDEX', key, middle)
    if not isMarker(element) and element > post then low = middle + 1 else high = middle end
  end
  return low
end

-- Writes the list anew; its time to live is `keptMs`, none when that is negative.
local function rewrite(key, ids, marker, keptMs)
  redis.call('DEL', key)
  for from = 1, #ids, ROWS_MAX do
    redis.call('RPUSH', key, unpack(ids, from, math.min(from + ROWS_MAX - 1, #ids)))
  end
  redis.call('RPUSH', key, markerText(marker))
  if keptMs >= 0 then redis.call('PEXPIRE', key, keptMs) end
end
