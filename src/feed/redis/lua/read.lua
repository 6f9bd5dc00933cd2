-- Entries beyond a position, nearest first. Reads only.
-- KEYS: timeline. ARGV: position, '1' towards older or '0' towards newer, count.
-- Returns { token, version, floor, 1 when the list goes on behind them, ids }, or nil when there is no timeline.
local position, count = ARGV[1], tonumber(ARGV[3])
local key = KEYS[1]
-- Most reads begin above the newest entry: what they need is in front, and the marker.
if ARGV[2] == '1' and #position >= 19 then
  local front = redis.pcall('LRANGE', key, 0, count)
  local newest = front[1]
  if newest and not isMarker(newest) and (#position > 19 or newest < position) then
    local marker = markerAt(key, -1)
    if not marker then return false end
    local more = #front > count and not isMarker(front[#front])
    front[#front] = nil
    return { marker.token, string.format('%.0f', marker.version), marker.floor, more and 1 or 0, front }
  end
end
local marker = markerAt(key, -1)
if not marker then return false end
local length = redis.call('LLEN', key)
local entries = length - 1
-- Positions have as many digits as ids, or are beyond all of them; most reads begin above the newest.
local digits = #position
if digits == 19 and redis.call('LINDEX', key, 0) < position then digits = 20 end
local from, till
if ARGV[2] == '1' then
  if digits > 19 then from = 0
  elseif digits < 19 then from = entries
  else
    from = placeOf(key, length, position)
    if redis.call('LINDEX', key, from) == position then from = from + 1 end
  end
  till = math.min(from + count, entries) - 1
else
  local place = entries
  if digits > 19 then place = 0 elseif digits == 19 then place = placeOf(key, length, position) end
  till = place - 1
  from = math.max(0, place - count)
end
local ids = till >= from and redis.call('LRANGE', key, from, till) or {}
local more = 0
if ARGV[2] == '1' then
  if till + 1 < entries and till >= from then more = 1 end
else
  if from > 0 then more = 1 end
  local nearest = {}
  for i = #ids, 1, -1 do nearest[#nearest + 1] = ids[i] end
  ids = nearest
end
return { marker.token, string.format('%.0f', marker.version), marker.floor, more, ids }
