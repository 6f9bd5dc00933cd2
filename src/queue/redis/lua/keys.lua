-- The one key table. Everything of a queue lies under one base, `<prefix>:{<queue>}`, so in one slot of a Cluster.
--
--   q            hash    configuration (`json` for readers, `fast` for these functions), `seq` (last number given), `grants`
--   m            hash    record key -> body: what a message was enqueued with (see record.lua)
--   s            hash    record key -> state record; a message that nobody has touched since its enqueue has none
--   p            zset    pending: (priority, number + visible at + id)
--   i            zset    invisible: (visible at, number + id)
--   r            zset    running: (lease until, number + id)
--   dc dx de     zset    completed, canceled, errored: (number, number + record key)
--   x            zset    terminal messages: (expires at, packed list of record keys that end together)
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

-- A redis.call takes its arguments from the Lua stack, which ends near 8,000.
local ARGUMENTS_MAX = 4000

-- While a library is loaded, Lua's own names are out of reach: they are bound by the first call.
local byte, call, find, format, sub, pack, unpackFields, floor, max, min, band, bor

local function bind()
  byte, find, format, sub = string.byte, string.find, string.format, string.sub
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
