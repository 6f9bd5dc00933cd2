-- Takes ids out of a timeline that has not changed, but for pushes, since they were read.
-- KEYS: timeline. ARGV: token, version, then ids. Returns how many were there.
local key = KEYS[1]
local marker = markerAt(key, -1)
if not marker or marker.token ~= ARGV[1] or marker.version ~= tonumber(ARGV[2]) then return 0 end
local gone = {}
for i = 3, #ARGV do gone[ARGV[i]] = true end
local kept, removed = {}, 0
for _, id in ipairs(redis.call('LRANGE', key, 0, -2)) do
  if gone[id] then removed = removed + 1 else kept[#kept + 1] = id end
end
if removed > 0 then rewrite(key, kept, marker, redis.call('PTTL', key)) end
return removed
