-- The lock in hand. Reads come first and fail on a key of the wrong type; a script that has written does not fail.
local call, find, sub = redis.call, string.find, string.sub

-- Numbers beyond 10^14 lose digits in Lua's own conversion.
local function text(number)
  return string.format('%.0f', number)
end

local function lock_of(key, record, value, fields)
  return {
    key = key, record = record, value = value,
    last = tonumber(fields[1]) or 0, kept = tonumber(fields[2]) or 0, queue = fields[3] or '', from = 1,
    owner = fields[5], first = tonumber(fields[6]), open = tonumber(fields[7]), sweep = tonumber(fields[8]),
    set = {}, gone = {},
  }
end

local function set(lock, field, value)
  local list = lock.set
  list[#list + 1] = field
  list[#list + 1] = value
end

-- The record must not be forgotten before this moment. It is kept for twice as long, so that most steps need no EXPIRE.
local function keep(lock, moment)
  if moment > lock.kept then
    lock.kept = 2 * moment - now
    lock.extend = true
  end
end

local function forget(lock)
  if #lock.gone > 0 then
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
  if place == lock.from then
    lock.from = lock.from + 33
  else
    lock.queue = sub(lock.queue, 1, place - 1) .. sub(lock.queue, place + 33)
  end
  lock.moved = true
  erase(lock, 'w' .. owner)
end

local function ticket_of(lock, owner)
  local packed = call('HGET', lock.record, 'w' .. owner)
  if not packed then return nil end
  local channel, ttl, block, since, refreshed, passed, info =
    string.match(packed, '^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  return {
    owner = owner, channel = channel, ttl = tonumber(ttl), block = tonumber(block), since = since,
    refreshed = tonumber(refreshed), passed = tonumber(passed), info = info,
  }
end

local function write(lock, ticket)
  set(lock, 'w' .. ticket.owner, ticket.channel .. ' ' .. ticket.ttl .. ' ' .. ticket.block .. ' ' .. ticket.since
    .. ' ' .. text(ticket.refreshed) .. ' ' .. ticket.passed .. ' ' .. ticket.info)
  keep(lock, now + TICKET_LIFE)
end

-- The first live ticket; dead ones before it are dropped.
local function head(lock)
  while lock.from <= #lock.queue do
    local owner = sub(lock.queue, lock.from, lock.from + 31)
    local ticket = ticket_of(lock, owner)
    if ticket and now < ticket.refreshed + TICKET_LIFE then return ticket end
    drop(lock, lock.from, owner)
  end
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

local function grant(lock, owner, ttl, block, info)
  local first = math.max(lock.last + 1, now)
  lock.last = first + block - 1
  lock.value, lock.owner, lock.first, lock.left = owner, owner, first, ttl
  set(lock, 'o', owner)
  set(lock, 'f', text(first))
  set(lock, 's', text(now))
  set(lock, 'i', info)
  set(lock, 'l', text(lock.last))
  close(lock)
  keep(lock, lock.last + ttl * 1000 * COUNTER_TTLS)
end

-- If the lock is free and a live ticket waits, hands the lock over and tells.
local function settle(lock, me)
  local ticket = head(lock)
  while ticket and not lock.value do
    if is_open(lock, ticket) then return end
    drop(lock, lock.from, ticket.owner)
    -- A server that takes no writes says so here, before anybody is told of a grant; and after a first write that
    -- needs no memory, Redis lets the others pass though its memory is full.
    forget(lock)
    local ttl = math.min(ticket.ttl, GRANT_TTL)
    local first = math.max(lock.last + 1, now)
    local heard = tell(ticket, 'g' .. ticket.owner .. ' ' .. text(first) .. ' ' .. text(ttl))
    if heard > 0 or ticket.owner == me or now < ticket.refreshed + UNREACHABLE_AFTER then
      return grant(lock, ticket.owner, ttl, ticket.block, ticket.info)
    end
    ticket = head(lock)
  end
  if not ticket and not lock.value then close(lock) end
end

-- Tombstones that have ended are dropped when the record's end is pushed, which happens once in ten ttls.
local function sweep(lock)
  if not lock.sweep or lock.sweep > now then return end
  local all, earliest = call('HGETALL', lock.record), nil
  for at = 1, #all, 2 do
    if sub(all[at], 1, 1) == 'x' then
      local ends = tonumber(all[at + 1])
      if ends <= now then
        erase(lock, all[at])
      elseif not earliest or ends < earliest then
        earliest = ends
      end
    end
  end
  if earliest then set(lock, 'b', text(earliest)) else erase(lock, 'b') end
end

-- Takes the hold away; the key itself goes when all is written.
local function release(lock)
  lock.value = false
  lock.released = true
end

-- Writes what has changed: the record, then the lock. Where the record may not be written, no lock is left behind.
local function store(lock)
  if lock.moved then set(lock, 'q', sub(lock.queue, lock.from)) end
  if lock.extend then
    sweep(lock)
    set(lock, 'u', text(lock.kept))
  end
  forget(lock)
  if #lock.set > 0 then call('HSET', lock.record, unpack(lock.set)) end
  if lock.extend then call('PEXPIRE', lock.record, text(math.ceil((lock.kept - now) / 1000))) end
  if lock.left and lock.value then
    call('SET', lock.key, lock.value, 'PX', text(lock.left))
  elseif lock.released then
    call('DEL', lock.key)
  end
end

-- Milliseconds left of the hold, granted here or before; -1 if it has no end.
local function left_of(lock)
  if not lock.value then return 0 end
  return lock.left or call('PTTL', lock.key)
end

local function holds(lock, me)
  return lock.value == me and lock.owner == me
end

local function queued(lock, place)
  local foreign = lock.value and lock.value ~= lock.owner
  return { QUEUED, lock.last, left_of(lock), (place - lock.from) / 33, foreign and 1 or 0 }
end
