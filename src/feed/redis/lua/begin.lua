-- An empty timeline in place of whatever stands under the key, unless it is of a later build. Nothing is below its floor, so it
-- takes every post that arrives from now on.
-- KEYS: timeline. ARGV: token, keptMs. Returns 1, or 0 where a later build has begun.
local token, keptMs = ARGV[1], tonumber(ARGV[2])
if not string.match(token, '^%d+$') or not keptMs then return redis.error_reply('ERR begin: token, keptMs') end
local marker = markerAt(KEYS[1], -1)
if marker and isAbove(marker.token, token) then return 0 end
rewrite(KEYS[1], {}, { token = token, version = 0, floor = '0' }, keptMs)
return 1
