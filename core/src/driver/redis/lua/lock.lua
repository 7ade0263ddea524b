-- The lock in hand. Reads come first and fail on a key of the wrong type; a script that has written does not fail.
-- Names in capitals stand for numbers, which are put in their place before the text is sent.
local call, sub = redis.call, string.sub

-- Reads a lock: its holder (false: free); of the record the counter, until when it is kept, the queue, the holder's
-- owner id and first token, since when the lock is open, when tombstones are due, and the end of this owner's own.
local function read(key, record, holder, me)
  local fields = call('HMGET', record, 'l', 'u', 'q', 'o', 'f', 'm', 'b', 'x' .. me)
  return {
    key = key, record = record, holder = holder,
    last = tonumber(fields[1]) or 0, kept = math.abs(fields[2] or 0), queue = fields[3] or '',
    owner = fields[4], first = tonumber(fields[5]), open = tonumber(fields[6]), due = tonumber(fields[7]),
    buried = tonumber(fields[8]),
    -- What changes: pairs to set, fields to remove; whether the queue, the record's end, or what `u` says; whether the
    -- lock was opened; the lock.
    set = {}, gone = {}, moved = false, extended = false, turned = false,
    opened = false, granted = false, released = false,
  }
end

local function put(lock, field, content)
  local set = lock.set
  local count = #set
  set[count + 1], set[count + 2] = field, content
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
  -- What `unpack` can carry is limited.
  if #lock.gone == 1000 then forget(lock) end
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
  local refreshed, passed, ttl, block, since, channel, at = struct.unpack(TICKET_FORM, packed)
  return {
    owner = owner, refreshed = refreshed, passed = passed, ttl = ttl, block = block, since = since, channel = channel,
    info = sub(packed, at),
  }
end

local function write(lock, ticket)
  put(lock, 'w' .. ticket.owner, struct.pack(TICKET_FORM, ticket.refreshed, ticket.passed, ticket.ttl, ticket.block,
    ticket.since, ticket.channel) .. ticket.info)
  keep(lock, now + TICKET_LIFE)
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
  return math.max(lock.last + 1, now)
end

local function is_open(lock, ticket)
  return lock.open and ticket.passed < PASSES and now < lock.open + OPEN_FOR
end

local function close(lock)
  if lock.open then
    lock.open = nil
    erase(lock, 'm')
  end
end

-- How many heard it. Who must not publish cannot tell, so it counts as heard.
local function tell(ticket, message)
  local heard = redis.pcall('PUBLISH', ticket.channel, message)
  return type(heard) == 'number' and heard or 1
end

local function grant(lock, owner, ttl, block, info, first)
  lock.last = first + block - 1
  lock.holder, lock.owner, lock.first, lock.granted = owner, owner, first, ttl
  put(lock, 'o', owner)
  put(lock, 'f', first)
  put(lock, 's', now)
  put(lock, 'i', info)
  put(lock, 'l', lock.last)
  close(lock)
  keep(lock, lock.last + ttl * 1000 * COUNTER_TTLS)
end

-- Drops the dead from the head of the queue; if the lock is free and a live ticket waits, hands it over and tells.
local function settle(lock, me)
  local ticket = head(lock)
  while ticket and not lock.holder do
    if is_open(lock, ticket) then return end
    drop(lock, 1, ticket.owner)
    -- A server that takes no writes says so here, before anybody is told of a grant; and after a first write that
    -- needs no memory, Redis lets the others pass though its memory is full.
    forget(lock)
    local ttl = math.min(ticket.ttl, GRANT_TTL)
    local first = next_token(lock)
    local heard = tell(ticket, string.format('g%s %.0f %d', ticket.owner, first, ttl))
    if heard > 0 or ticket.owner == me or now < ticket.refreshed + UNREACHABLE_AFTER then
      return grant(lock, ticket.owner, ttl, ticket.block, ticket.info, first)
    end
    ticket = head(lock)
  end
  if not ticket and not lock.holder then close(lock) end
end

-- Tombstones that have ended are dropped when the record's end is pushed, which happens once in ten ttls.
local function sweep(lock)
  if not lock.due or lock.due > now then return end
  local all = call('HGETALL', lock.record)
  lock.due = nil
  for at = 1, #all, 2 do
    if sub(all[at], 1, 1) == 'x' then
      local ends = all[at + 1] + 0
      if ends <= now then
        erase(lock, all[at])
      elseif not lock.due or ends < lock.due then
        lock.due = ends
      end
    end
  end
  if lock.due then put(lock, 'b', lock.due) else erase(lock, 'b') end
end

-- Writes what has changed: the record, then the lock. Where the record may not be written, no lock is left behind.
local function store(lock)
  if lock.extended then sweep(lock) end
  if lock.moved then put(lock, 'q', lock.queue) end
  if lock.opened and lock.open then put(lock, 'm', lock.open) end
  if lock.turned then put(lock, 'u', (lock.queue ~= '' or lock.due) and -lock.kept or lock.kept) end
  forget(lock)
  if lock.set[1] then call('HSET', lock.record, unpack(lock.set)) end
  if lock.extended then call('PEXPIRE', lock.record, math.ceil((lock.kept - now) / 1000)) end
  if lock.granted then
    call('SET', lock.key, lock.holder, 'PX', lock.granted)
  elseif lock.released then
    call('DEL', lock.key)
  end
end

-- Milliseconds left of the hold, granted here or before; -1 if it has no end.
local function left(lock)
  return lock.granted or lock.holder and call('PTTL', lock.key) or 0
end

local function queued(lock, place)
  local foreign = lock.holder and lock.holder ~= lock.owner
  return { QUEUED, lock.last, left(lock), (place - 1) / 33, foreign and 1 or 0 }
end
