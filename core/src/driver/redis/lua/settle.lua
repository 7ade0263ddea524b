local function write(lock, ticket)
  put(lock, 'w' .. ticket.owner, struct.pack(TICKET_FORM, ticket.refreshed, ticket.passed, ticket.ttl, ticket.block,
    ticket.since, ticket.mode, ticket.limit, ticket.channel) .. ticket.info)
  keep(lock, now + TICKET_LIFE)
end

local function is_open(lock, ticket)
  return lock.open and ticket.passed < PASSES and now < lock.open + OPEN_FOR
end

-- How many heard it. Who must not publish cannot tell, so it counts as heard.
local function tell(ticket, message)
  local heard = redis.pcall('PUBLISH', ticket.channel, message)
  return type(heard) == 'number' and heard or 1
end

-- Drops the dead from the head of the queue; as long as the next may hold beside those who do, hands over and tells.
local function settle(lock, me)
  FINISH_UPGRADE
  local ticket = head(lock)
  while ticket and admits(lock, ticket.mode, ticket.limit) do
    if is_open(lock, ticket) then return end
    drop(lock, 1, ticket.owner)
    -- A server that takes no writes says so here, before anybody is told of a grant; and after a first write that
    -- needs no memory, Redis lets the others pass though its memory is full.
    forget(lock)
    local ttl = math.min(ticket.ttl, GRANT_TTL)
    local first = next_token(lock)
    local heard = tell(ticket, string.format('g%s %.0f %d', ticket.owner, first, ttl))
    if heard > 0 or ticket.owner == me or now < ticket.refreshed + UNREACHABLE_AFTER then
      seat(lock, ticket.owner, ticket.mode, ttl, ticket.block, ticket.info, first)
      ONE_IS_ENOUGH
    end
    ticket = head(lock)
  end
  if not ticket then close(lock) end
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

-- Writes what has changed: the record, then the lock. Where the record may not be written, no lock is left behind.
local function store(lock)
  if lock.extended then sweep(lock) end
  if lock.moved then put(lock, 'q', lock.queue) end
  if lock.opened and lock.open then put(lock, 'm', lock.open) end
  if not lock.other then
    NOTE_HOLDS
  end
  if lock.turned then
    local long = lock.queue ~= '' or lock.due or lock.other or lock.watch or busy(lock)
    put(lock, 'c', struct.pack('<dd', lock.last, long and -lock.kept or lock.kept))
  end
  forget(lock)
  if lock.set[1] then call('HSET', lock.record, unpack(lock.set)) end
  if lock.extended then call('PEXPIRE', lock.record, math.ceil((lock.kept - now) / 1000)) end
  if not lock.other then commit(lock) end
end

local function queued(lock, ahead)
  return { QUEUED, lock.last, left(lock), ahead, foreign(lock) and 1 or 0 }
end
