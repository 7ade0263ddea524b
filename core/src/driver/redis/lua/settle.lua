local function write(lock, ticket)
  put(lock, 'w' .. ticket.owner, struct.pack(TICKET_FORM, ticket.refreshed, ticket.passed, ticket.ttl, ticket.block,
    ticket.since, ticket.mode, ticket.limit, ticket.permits, ticket.channel) .. ticket.info)
  keep(lock, now + TICKET_LIFE)
end

local function is_open(lock, ticket)
  return lock.open and ticket.passed < PASSES and now < lock.open + OPEN_FOR
end

-- How many heard it. Who must not publish cannot tell, so it counts as heard.
local function tell(channel, message)
  local heard = redis.pcall('PUBLISH', channel, message)
  return type(heard) == 'number' and heard or 1
end

-- Tombstones that have ended are dropped when the record's end is pushed, which happens once in ten ttls.
local function sweep(lock)
  if not lock.due or lock.due > now then return end
  local all = call('HGETALL', lock.record)
  -- The one of this very step is not written yet.
  lock.due = lock.laid
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

-- Writes what has changed: the record, then the lock. Where the record may not be written, no lock is left behind. May be
-- called again, for what has changed since.
local function write_changes(lock)
  if lock.extended then sweep(lock) end
  if lock.moved then put(lock, 'q', lock.queue) end
  if lock.opened and lock.open then put(lock, 'm', lock.open) end
  if not lock.other then
    NOTE_HOLDS
  end
  if lock.turned then
    local long = lock.queue ~= '' or lock.due or lock.other or busy(lock)
    put(lock, 'c', struct.pack('<ddB', lock.last, long and -lock.kept or lock.kept, LAYOUT))
  end
  forget(lock)
  local set = lock.set
  for from = 1, #set, FIELDS_AT_ONCE do
    call('HSET', lock.record, unpack(set, from, math.min(from + FIELDS_AT_ONCE - 1, #set)))
  end
  if lock.extended then call('PEXPIRE', lock.record, math.ceil((lock.kept - now) / 1000)) end
  if not lock.other then commit(lock) end
  lock.set, lock.moved, lock.extended, lock.turned, lock.opened = {}, false, false, false, false
end

-- The end of a script: writes what has changed, then publishes what is so by now.
local function store(lock)
  write_changes(lock)
  for _, notice in ipairs(lock.notices) do
    tell(notice[1], notice[2])
  end
end

-- Drops the dead from the head of the queue; as long as the next may hold beside those who do, hands over and tells. No
-- script serves more than so many, so that none keeps the server for long: the next one is asked to come for itself.
local function settle(lock, me)
  local ticket, served = head(lock), 0
  while ticket and admits(lock, ticket.mode, ticket.limit, ticket.permits) do
    if is_open(lock, ticket) or math.max(lock.last + 1, now) > TOKEN_MAX then return end
    if served == SERVED_AT_ONCE then
      return announce_later(lock, ticket.channel, 'o' .. ticket.owner)
    end
    drop(lock, 1, ticket.owner)
    local ttl, last = math.min(ticket.ttl, GRANT_TTL), lock.last
    local first = next_token(lock)
    local block = drawn(first, ticket.block)
    local message = string.format('g%s %.0f %d %d', ticket.owner, first, ttl, block)
    add_holder(lock, ticket.owner, ticket.mode, ttl, block, ticket.info, first, ticket.ttl, ticket.permits)
    if ticket.owner == me or now < ticket.refreshed + UNREACHABLE_AFTER then
      announce_later(lock, ticket.channel, message)
      served = served + 1
      ONE_IS_ENOUGH
    else
      -- Whoever has been silent may be gone. Only who hears of it keeps it, and what is heard has to be written.
      write_changes(lock)
      if tell(ticket.channel, message) > 0 then
        served = served + 1
        ONE_IS_ENOUGH
      else
        -- Nobody has its token.
        remove_holder(lock, ticket.owner)
        lock.last, lock.turned = last, true
      end
    end
    ticket = head(lock)
  end
  if not ticket then close(lock) end
end

-- Tells the head of the queue that the lock is open, if it is and the head may hold.
local function tell_open(lock)
  local ticket = head(lock)
  if ticket and is_open(lock, ticket) and admits(lock, ticket.mode, ticket.limit, ticket.permits) then
    announce_later(lock, ticket.channel, 'o' .. ticket.owner)
  end
end

local function queued(lock, ahead)
  return { QUEUED, lock.last, left(lock), ahead, foreign(lock) and 1 or 0 }
end
