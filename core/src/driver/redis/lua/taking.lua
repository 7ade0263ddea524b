
-- Asks for a lock in hand, and writes what has changed of it.
local function take(lock)
  if lock.buried and lock.buried > now then
    store(lock)
    return GONE
  end
  if reached > lock.last then
    lock.last = reached
    put(lock, 'l', reached)
  end
  if floor > 0 then keep(lock, math.max(reached, now) + ttl * 1000 * COUNTER_TTLS) end
  settle(lock, me)
  if lock.holder == me and lock.owner == me then
    store(lock)
    return { GRANTED, lock.first, left(lock) }
  end
  local place = string.find(lock.queue, me, 1, true)
  if not lock.holder then
    -- Nobody waits, or the lock is open: this owner passes the head over, unless it is the head.
    local ticket = head(lock)
    if place then drop(lock, place, me) end
    if ticket and ticket.owner ~= me then
      ticket.passed = ticket.passed + 1
      write(lock, ticket)
    end
    grant(lock, me, ttl, block, ARGV[7], next_token(lock))
    store(lock)
    return lock.first
  end
  if ARGV[3] == '0' then
    store(lock)
    return { HELD, left(lock) }
  end
  if not place then
    place = #lock.queue + 1
    lock.queue = lock.queue .. me .. ','
    lock.moved, lock.turned = true, true
    write(lock, {
      owner = me, refreshed = now, passed = 0, ttl = ttl, block = block, since = now, channel = ARGV[6],
      info = ARGV[7],
    })
  end
  store(lock)
  return queued(lock, place)
end
