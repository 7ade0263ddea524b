-- The lock in hand. Reads come first and fail on a key of the wrong type; a script that has written does not fail.
-- Names in capitals stand for numbers and short texts, which are put in their place before the script is sent.
local sub = string.sub

-- Reads a lock: what lies under it (false: nothing); of the record the counter and until when it is kept, the holder of
-- a mutex, the queue, since when the lock is open, when tombstones are due, which other kind it is in use as and who
-- holds it so, and the end of this owner's own tombstone. `longest` is the longest lease that was
-- asked for by who holds (of a mutex in ms, else in µs): an end further away was set by a clock that has stepped back since.
local function read(key, record, holder, me)
  local fields = call('HMGET', record, 'c', 'h', 'q', 'm', 'b', 'k', 'H', 'x' .. me, 'H0')
  local last, kept, owner, first, farthest, longest = 0, 0, nil, 0, 0, 0
  local count, soonest, buckets, bounds, writer = 0, math.huge, 1, NO_BOUND, nil
  if fields[1] then
    if string.byte(fields[1], 17) ~= LAYOUT then error('fencelock: another layout') end
    last, kept = struct.unpack('<dd', fields[1])
  end
  if fields[2] then
    owner, first, longest = sub(fields[2], 1, 32), struct.unpack('<d', fields[2], 33), struct.unpack('<d', fields[2], 49)
  end
  local sum = fields[7]
  if sum then
    farthest, longest, count, soonest, buckets = struct.unpack('<ddddd', sum)
    bounds = sub(sum, 41, 40 + 8 * buckets)
    if #sum > 40 + 8 * buckets then writer = sub(sum, -32) end
  end
  return {
    key = key, record = record, holder = holder,
    last = last, kept = math.abs(kept), owner = owner, first = first, queue = fields[3] or '',
    open = tonumber(fields[4]), due = tonumber(fields[5]), kind = tonumber(fields[6]) or KIND_MUTEX,
    farthest = farthest, longest = longest, count = count, soonest = soonest, buckets = buckets, bounds = bounds,
    writer = writer, holds = { [0] = sum and fields[9] or '' }, fresh = {},
    noted = fields[2],
    tombstone = tonumber(fields[8]),
    -- What changes: pairs to set, fields to remove; whether the queue, the record's end, or the counter's field; whether
    -- the lock was opened; the lock.
    set = {}, gone = {}, moved = false, extended = false, turned = false,
    opened = false, granted = false, released = false, NONE_TOUCHED
    -- What is published once all that is written: pairs of channel and message.
    notices = {},
  }
end

local function put(lock, field, content)
  local set = lock.set
  local count = #set
  set[count + 1], set[count + 2] = field, content
end

-- Has something published once all is written: should the server refuse a write, nobody was told what is not so.
local function announce_later(lock, channel, message)
  local notices = lock.notices
  notices[#notices + 1] = { channel, message }
end

-- The record must not be forgotten before this moment. It is kept for twice as long, so that most steps need no EXPIRE.
local function keep(lock, moment)
  if moment > lock.kept then
    lock.kept = 2 * moment - now
    lock.extended, lock.turned = true, true
  end
end

local function forget(lock)
  if lock.gone[1] then
    call('HDEL', lock.record, unpack(lock.gone))
    lock.gone = {}
  end
end

local function erase(lock, field)
  lock.gone[#lock.gone + 1] = field
  -- What `unpack` can carry is limited: Lua's stack has 8,000 places.
  if #lock.gone == FIELDS_AT_ONCE then forget(lock) end
end

-- Takes the ticket at this place out of the queue.
local function drop(lock, place, owner)
  lock.queue = sub(lock.queue, 1, place - 1) .. sub(lock.queue, place + 33)
  lock.moved, lock.turned = true, true
  erase(lock, 'w' .. owner)
end

local function ticket_of(lock, owner)
  local packed = call('HGET', lock.record, 'w' .. owner)
  if not packed then return nil end
  local refreshed, passed, ttl, block, since, mode, limit, permits, channel, at = struct.unpack(TICKET_FORM, packed)
  return {
    owner = owner, refreshed = refreshed, passed = passed, ttl = ttl, block = block, since = since, mode = mode,
    limit = limit, permits = permits, channel = channel, info = sub(packed, at),
  }
end

-- The first live ticket; dead ones before it are dropped.
local function head(lock)
  while lock.queue ~= '' do
    local owner = sub(lock.queue, 1, 32)
    local ticket = ticket_of(lock, owner)
    if ticket and now < ticket.refreshed + TICKET_LIFE then return ticket end
    drop(lock, 1, owner)
  end
end

local function next_token(lock)
  local token = math.max(lock.last + 1, now)
  -- Beyond it numbers are no longer told apart. Nothing was written yet.
  if token > TOKEN_MAX then error('fencelock: no token is left') end
  return token
end

-- How many tokens a grant draws: no further ahead of the clock than so much, so that the counter of a server that loses it is soon
-- passed by the clock.
local function drawn(first, block)
  return math.max(1, math.min(block, now + TOKEN_LEAD - first + 1, TOKEN_MAX - first + 1))
end

local function close(lock)
  if lock.open then
    lock.open = nil
    erase(lock, 'm')
  end
end

local function mark_of(kind)
  return kind == KIND_READ_WRITE and MARK_READ_WRITE or MARK_SEMAPHORE
end
