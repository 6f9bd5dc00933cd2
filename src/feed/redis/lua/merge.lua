-- Merges ids into the timeline of this build and raises its floor; what is at or below the floor goes, and so does what does
-- not fit, which raises the floor further. Touches entriesMax + slack + the ids given.
-- KEYS: timeline. ARGV: token, floor, entriesMax, keptMs, then ids, newest first.
-- Returns { how many ids are new, the version since }, or nil when there is no timeline of this token.
local token, floor, entriesMax, keptMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not string.match(floor, '^%d+$') or not entriesMax or not keptMs then
  return redis.error_reply('ERR merge: token, floor, entriesMax, keptMs')
end
local key = KEYS[1]
local marker = markerAt(key, -1)
if not marker or marker.token ~= token then return false end
if isAbove(floor, marker.floor) then marker.floor = floor end
local held = redis.call('LRANGE', key, 0, -2)
local ids, added = {}, 0
local h, g = 1, 5
while #ids <= entriesMax and (h <= #held or g <= #ARGV) do
  local old, new = held[h], ARGV[g]
  local id
  if old and (not new or old >= new) then
    id = old
    h = h + 1
    if old == new then g = g + 1 end
  else
    id = new
    g = g + 1
  end
  if not isAbove(id, marker.floor) then break end
  if #ids == entriesMax then
    marker.floor = id
    break
  end
  ids[#ids + 1] = id
  if id ~= old then added = added + 1 end
end
marker.version = marker.version + 1
rewrite(key, ids, marker, keptMs)
return { added, string.format('%.0f', marker.version) }
