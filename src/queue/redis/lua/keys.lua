-- The one key table. Everything of a queue lies under one base, `<prefix>:{<queue>}`, so in one slot of a Cluster.
--
--   q            hash    configuration (`json` for readers, `fast` for these functions), `seq` (last number given), `grants`, `mark` (empty)
--   m            hash    record key -> body: what a message was enqueued with (see record.lua)
--   s            hash    record key -> state record; a message that nobody has touched since its enqueue has none
--   p            zset    pending: (priority, number + visible at + id)
--   i            zset    invisible: (visible at, number + id)
--   r            zset    running: (lease until, number + id); and the STAKE, for ever
--   dc dx de     zset    completed, canceled, errored: (number, number + record key)
--   x            zset    terminal messages: (expires at, `s` and a record key, or `l` and a packed list of those that end together)
--   k:<pair>     zset    the pending messages that have a metadata pair, as in p, but for those in y
--   n            hash    how many messages of a pair are invisible (`i<pair>`), running (`r<pair>`) and, in an exclusive queue,
--                        pending (`p<pair>`)
--   v            hash    exclusivity value -> `r<id>` while one runs, else `h<member>` of its best waiting message
--   w:<value>    zset    the pending messages of a value, as in p
--   y:<pair>,<value>  zset  set aside: pending messages of a value that was busy when a filter met them in k:<pair>
--   a:<value>    set     the pairs under which messages of a value are set aside
--   h            zset    the best waiting message of each value of which none runs, as in p
--   f            hash    lease token -> follow-ups of a completed message that are still on their way to other slots
--   t            hash    request id -> ids it was given; `<request id>#` -> how many of several still run
--
-- Equal scores are ordered by member bytes, hence the number in front. A record key is the id, until the id is free again
-- while the message is still kept: then id, NUL, and the token (or number) of that message. No id contains NUL.
--
-- A queue is declared by two keys: `<base>:q`, and `<base>` itself, which never exists. While a Cluster moves the slot, one
-- of the two is missing wherever the call goes, so it is answered with TRYAGAIN: no function ever works on half a queue.
local TERMINAL_KEY = { c = ':dc', x = ':dx', e = ':de' }

-- A sorted set of few and short members is a list to Redis, in which every ZADD and ZREM reads all the others. r has few members at
-- the busiest times; one that is too long for such a list makes it a real set from the first message of the queue on.
local STAKE = '~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~'
local STAKE_SCORE = '+inf'

-- Full names are kept, by base: joining strings is what a short call would spend most of its time on. With them stands when the
-- next message of i or r comes due, as far as the functions of this library know (see `sweep`).
local SUFFIXES = {
  ':q', ':m', ':s', ':p', ':i', ':r', ':dc', ':dx', ':de', ':x', ':n', ':v', ':h', ':t', ':f', ':hint',
}
local namesByBase, namesKept = {}, 0

local function namesOf(base)
  local names = namesByBase[base]
  if names then return names end
  if namesKept == 1000 then namesByBase, namesKept = {}, 0 end
  names = { dueAt = 0, lookedAt = 0 }
  for k = 1, #SUFFIXES do names[SUFFIXES[k]] = base .. SUFFIXES[k] end
  namesByBase[base] = names
  namesKept = namesKept + 1
  return names
end

-- A redis.call takes its arguments from the Lua stack, which ends near 8,000.
local ARGUMENTS_MAX = 4000

-- While a library is loaded, Lua's own names are out of reach: they are bound by the first call. A name that is not bound is looked
-- up through the server's guard of globals, which costs more than a call of a function.
local function globals()
  return ipairs, next, pairs, tonumber, tostring, type, unpack
end

local ipairs, next, pairs, tonumber, tostring, type, unpack
local byte, call, find, format, match, sub, pack, unpackFields, floor, max, min, band, bor, huge
local concat, remove, encodeList, decodeList, decodeJson

local function bind()
  ipairs, next, pairs, tonumber, tostring, type, unpack = globals()
  byte, find, format, match, sub = string.byte, string.find, string.format, string.match, string.sub
  concat, remove, huge = table.concat, table.remove, math.huge
  encodeList, decodeList, decodeJson = cmsgpack.pack, cmsgpack.unpack, cjson.decode
  pack, unpackFields = struct.pack, struct.unpack
  floor, max, min = math.floor, math.max, math.min
  band, bor = bit.band, bit.bor
  call = redis.call
end

-- flags: `allow-oom` for what works on a full server, `no-writes` for reads.
local function register(name, flags, callback)
  redis.register_function{
    function_name = PREFIX .. name,
    flags = flags,
    callback = function(keys, args)
      if not call then bind() end
      return callback(keys, args)
    end,
  }
end
