-- Asks for a lock in hand, and writes what has changed of it.
local function take(lock)
  local other = enter(lock)
  if lock.tombstone and lock.tombstone > now then
    store(lock)
    return GONE
  end
  if other then return { CONFLICT, other } end
  local mode, limit, permits = TERMS_OF_KIND
  if reached > lock.last then
    lock.last, lock.turned = reached, true
  end
  if floor > 0 then keep(lock, math.max(reached, now) + ttl * 1000 * COUNTER_TTLS) end
  settle(lock, me)
  local first, rest = held(lock, me)
  if first then
    store(lock)
    return { GRANTED, first, rest }
  end
  local place = string.find(lock.queue, me, 1, true)
  local ticket = admits(lock, mode, limit, permits) and head(lock)
  if ticket == nil or ticket and is_open(lock, ticket) then
    -- Nobody waits, or the lock is open: this owner passes the head over, unless it is the head.
    if place then drop(lock, place, me) end
    if ticket and ticket.owner ~= me then
      ticket.passed = ticket.passed + 1
      write(lock, ticket)
    end
    first = next_token(lock)
    local count = drawn(first, block)
    add_holder(lock, me, mode, ttl, count, info, first, ttl, permits)
    SETTLE_THE_REST
    store(lock)
    return count == block and first or { GRANTED, first, ttl, count }
  end
  if wait == 0 then
    store(lock)
    return { HELD, left(lock) }
  end
  if not place then
    place = #lock.queue + 1
    lock.queue = lock.queue .. me .. ','
    lock.moved, lock.turned = true, true
    write(lock, {
      owner = me, refreshed = now, passed = 0, ttl = ttl, block = block, since = now, mode = mode, limit = limit,
      permits = permits,
      channel = channel, info = info,
    })
  end
  store(lock)
  return queued(lock, (place - 1) / 33)
end
