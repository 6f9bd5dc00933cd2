-- How a message is stored: two packed strings, read by src/queue/redis/codec.ts as well.
--
-- Body, written by the enqueue and by `change` of a payload: fixed fields, head, newline, payload. The head is empty or
-- the JSON `[[key, value, …], trace]`, written by the client; JSON has no raw newline.
-- State record: fixed fields, lease token, history, text (the result of a completed message, else the last error).
-- Times and milliseconds are doubles, exact for every safe integer; -1 stands for none.
-- A history entry: from, to, at, attempt, version; `-` for no state. The enqueue's own entry is in the body.
local BODY_SHARED_FORMAT, BODY_SHARED_AT = '>ddI4ddB', 9
local BODY_FORMAT, BODY_SIZE = '>c8ddI4ddB', 45
local STATE_HEAD_FORMAT, STATE_HEAD_SIZE = '>c1c1BI4I4ddddddddI2', 77
local STATE_FORMAT, STATE_SIZE = STATE_HEAD_FORMAT .. 'c8I2I2', 89
local EVENT_FORMAT, EVENT_SIZE = '>c1c1I6I4I6', 18
local EVENTS_MAX = 256

-- Fields of a record in memory: those of the state record in its order, then what is not fixed.
local STATE, ENDED, FLAGS, ATTEMPTS, ATTEMPTS_MAX, VERSION = 1, 2, 3, 4, 5, 6
local PRIORITY, VISIBLE_AT, LEASE_MS, LEASE_UNTIL, STARTED_AT, FINISHED_AT, EXPIRES_AT = 7, 8, 9, 10, 11, 12, 13
local REQUEST_SIZE, SEQ, TOKEN_LENGTH, HISTORY_LENGTH = 14, 15, 16, 17
local TOKEN, HISTORY, TEXT, KEY, METADATA, PACKED = 18, 19, 20, 21, 22, 23

local UNIQUE, HISTORY_FROM_START, BEGAN_INVISIBLE, HAS_METADATA, HAS_TEXT, HIDDEN = 1, 2, 4, 8, 16, 32

-- The number of a message, 8 bytes in order; two halves, because a double is exact only to 2^53.
local SEQ_HALF = 10000000

local function packSeq(high, low)
  return pack('>I4I4', high, low)
end

local function seqScore(seq)
  local high, low = unpackFields('>I4I4', seq)
  return high * SEQ_HALF + low
end

local function recordOfBody(key, body)
  local seq, priority, _, attemptsMax, visibleAt, leaseMs, flags = unpackFields(BODY_FORMAT, body)
  local state = band(flags, BEGAN_INVISIBLE) ~= 0 and 'i' or 'p'
  return {
    state, '-', flags, 0, attemptsMax, 1, priority, visibleAt, leaseMs, -1, -1, -1, -1, 0, seq, 0, 0, '', '', '',
    key, false, false,
  }
end

local function recordOfState(key, packed)
  local r = { unpackFields(STATE_FORMAT, packed) }
  local history = STATE_SIZE + r[TOKEN_LENGTH]
  local text = history + r[HISTORY_LENGTH]
  r[TOKEN] = sub(packed, STATE_SIZE + 1, history)
  r[HISTORY] = sub(packed, history + 1, text)
  r[TEXT] = sub(packed, text + 1)
  r[KEY] = key
  r[METADATA], r[PACKED] = false, false
  return r
end

-- Kept in the record until its next change: what is stored is often answered as well.
local function packed(r)
  if r[PACKED] then return r[PACKED] end
  r[TOKEN_LENGTH] = #r[TOKEN]
  r[HISTORY_LENGTH] = #r[HISTORY]
  r[PACKED] = pack(STATE_FORMAT, unpack(r, STATE, HISTORY_LENGTH)) .. r[TOKEN] .. r[HISTORY] .. r[TEXT]
  return r[PACKED]
end

local function setText(r, text)
  r[TEXT] = text or ''
  r[FLAGS] = text and bor(r[FLAGS], HAS_TEXT) or band(r[FLAGS], 255 - HAS_TEXT)
end

-- Member of p, k:<pair>, w:<value> and h; `oldest` reads the time from it.
local function waitingMember(r)
  return r[SEQ] .. pack('>I6', max(0, r[VISIBLE_AT])) .. r[KEY]
end
local WAITING_KEY_AT = 15

-- Member of every other set.
local function plainMember(r)
  return r[SEQ] .. r[KEY]
end
local PLAIN_KEY_AT = 9

local function headOf(body)
  return sub(body, BODY_SIZE + 1, find(body, '\n', BODY_SIZE + 1, true) - 1)
end

local function payloadOf(body)
  return sub(body, find(body, '\n', BODY_SIZE + 1, true) + 1)
end
