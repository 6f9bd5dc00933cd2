-- What a call has gathered is written, one command for each key: nothing before everything has been read and decided, and a
-- batch of 100 costs a dozen commands.
-- Something of i or r comes due then.
local function comesDue(names, at)
  if at < names.dueAt then names.dueAt = at end
end

-- Scores are whole numbers. A number as an argument would be printed with 17 digits, which costs more than all the rest.
local function flushSets(c)
  local lastScore, lastText
  for suffix, members in pairs(c.sets) do
    local added, removed, adds, removes = NONE, NONE, 0, 0
    local isTimed = suffix == ':r' or suffix == ':i'
    for member, score in pairs(members) do
      if score then
        if adds == 0 then added = {} end
        if isTimed then comesDue(c.names, score) end
        if score ~= lastScore then lastScore, lastText = score, type(score) == 'number' and format('%d', score) or score end
        added[adds + 1], added[adds + 2] = lastText, member
        adds = adds + 2
      else
        if removes == 0 then removed = {} end
        removes = removes + 1
        removed[removes] = member
      end
    end
    if removes > 0 then writeMany('ZREM', c.names[suffix] or c.base .. suffix, removed) end
    if adds > 0 then writeMany('ZADD', c.names[suffix] or c.base .. suffix, added) end
  end
  c.sets = {}
end

-- c.dirty: record key -> what is to be written: state, body, all of both, token (the state without a body), or forgotten.
local function flushRecords(c)
  local states, bodies, stateless, bodiless = NONE, NONE, NONE, NONE
  for key, what in pairs(c.dirty) do
    if what == 'state' or what == 'all' or what == 'token' then
      if states == NONE then states = {} end
      local n = #states
      states[n + 1], states[n + 2] = key, packed(c.records[key])
    end
    if what == 'body' or what == 'all' then
      if bodies == NONE then bodies = {} end
      local n = #bodies
      bodies[n + 1], bodies[n + 2] = key, c.bodies[key]
    end
    if what == 'forgotten' then
      if stateless == NONE then stateless = {} end
      stateless[#stateless + 1] = key
    end
    if what == 'forgotten' or what == 'token' then
      if bodiless == NONE then bodiless = {} end
      bodiless[#bodiless + 1] = key
    end
  end
  writeMany('HSET', c.names[':m'], bodies)
  writeMany('HSET', c.names[':s'], states)
  writeMany('HDEL', c.names[':m'], bodiless)
  writeMany('HDEL', c.names[':s'], stateless)
  c.dirty = {}
end

local function flushCounts(c)
  for field, by in pairs(c.counts) do
    if by ~= 0 and call('HINCRBY', c.names[':n'], field, by) <= 0 then call('HDEL', c.names[':n'], field) end
  end
  c.counts = NONE
end

-- c.requests: request id -> leases that ended. The list of ids goes with the last of them.
local function flushRequests(c)
  local gone = {}
  for request, ended in pairs(c.requests) do
    if ended == true then
      gone[#gone + 1] = request
    elseif call('HINCRBY', c.names[':t'], request .. '#', -ended) <= 0 then
      gone[#gone + 1] = request
      gone[#gone + 1] = request .. '#'
    end
  end
  writeMany('HDEL', c.names[':t'], gone)
  c.requests = NONE
end

local function flushExpiring(c)
  for at, keys in pairs(c.expiring) do
    local text = format('%d', at)
    for from = 1, #keys, EXPIRING_TOGETHER do
      local to = min(#keys, from + EXPIRING_TOGETHER - 1)
      call('ZADD', c.names[':x'], text, from == to and 's' .. keys[from] or 'l' .. encodeList({ unpack(keys, from, to) }))
    end
  end
  c.expiring = NONE
end

-- A value is idle: of what filters have set aside of it the best of each pair can be found again. Whatever is better than
-- these has never been set aside.
local function restore(c, value)
  local pairsAside = call('SMEMBERS', c.base .. ':a:' .. value)
  for k = 1, #pairsAside do
    local best = call('ZPOPMIN', c.base .. ':y:' .. pairsAside[k] .. '\0' .. value)
    if best[1] then
      put(c, ':k:' .. pairsAside[k], best[1], best[2])
    else
      call('SREM', c.base .. ':a:' .. value, pairsAside[k])
    end
  end
end

-- Brings `v` and the idle heads to what the waiting messages of each touched value say, after those have been written.
local function flushValues(c)
  local values = {}
  for value in pairs(c.touched) do values[#values + 1] = value end
  local known = readMany(c.names[':v'], values)
  local set, gone = {}, {}
  for k = 1, #values do
    local value, current, entry = values[k], known[k], false
    if c.busy[value] then
      entry = 'r' .. c.busy[value]
    elseif current and byte(current) == 114 and not c.freed[value] then
      entry = current
    else
      local head = call('ZRANGE', c.base .. ':w:' .. value, '0', '0', 'WITHSCORES')
      if head[1] then
        entry = 'h' .. head[1]
        put(c, ':h', head[1], head[2])
        restore(c, value)
      elseif current then
        call('DEL', c.base .. ':a:' .. value)
      end
    end
    if current ~= entry then
      if current and byte(current) == 104 then put(c, ':h', sub(current, 2), false) end
      if entry then
        set[#set + 1] = value
        set[#set + 1] = entry
      else
        gone[#gone + 1] = value
      end
    end
  end
  writeMany('HSET', c.names[':v'], set)
  writeMany('HDEL', c.names[':v'], gone)
  flushSets(c)
  c.touched, c.busy, c.freed = NONE, NONE, NONE
end

local function flush(c)
  if next(c.dirty) then flushRecords(c) end
  if next(c.sets) then flushSets(c) end
  if c.counts ~= NONE then flushCounts(c) end
  if c.expiring ~= NONE then flushExpiring(c) end
  if c.requests ~= NONE then flushRequests(c) end
  if c.touched ~= NONE then flushValues(c) end
end

-- A hint to those who wait: something may have become dequeueable.
local function publishHint(c)
  if c.hint then call('PUBLISH', c.names[':hint'], '') end
end

-- Ends a call: writes, then answers whether to call again, its own answer, events (id, packed, head, …), damaged ids. A table costs
-- the server as much as a command on its way out: where the answer is all there is to say, it stands alone, an empty list as nil.
local function reply(c, again, answer)
  flush(c)
  publishHint(c)
  if #c.events > 0 or #c.damaged > 0 then return { again, answer, c.events, c.damaged } end
  if again == 0 then
    local kind = type(answer)
    if kind == 'string' then return answer end
    if kind == 'table' and answer[1] == nil then return false end
    if kind == 'table' and type(answer[1]) == 'string' then return answer end
  end
  return { again, answer }
end
