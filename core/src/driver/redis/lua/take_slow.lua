local lock = lock_of(KEYS[1], KEYS[2], call('GET', KEYS[1]), fields)
if (tonumber(fields[4]) or 0) > now then return { GONE } end
if last > lock.last then
  lock.last = last
  set(lock, 'l', text(last))
end
if floor > 0 then keep(lock, math.max(last, now) + ttl * 1000 * COUNTER_TTLS) end
settle(lock, me)
if holds(lock, me) then
  store(lock)
  return { GRANTED, lock.first, left_of(lock) }
end
local place = find(lock.queue, me, lock.from, true)
if not lock.value then
  -- Nobody waits, or the lock is open: this owner passes the head over, unless it is the head.
  local ticket = head(lock)
  if place then drop(lock, place, me) end
  if ticket and ticket.owner ~= me then
    ticket.passed = ticket.passed + 1
    write(lock, ticket)
  end
  grant(lock, me, ttl, block, ARGV[7])
  store(lock)
  return { GRANTED, lock.first, ttl }
end
if ARGV[3] == '0' then
  store(lock)
  return { HELD, left_of(lock) }
end
if not place then
  place = #lock.queue + 1
  lock.queue = lock.queue .. me .. ','
  lock.moved = true
  write(lock, {
    owner = me, channel = ARGV[6], ttl = ARGV[2], block = ARGV[4], since = text(now), refreshed = now, passed = 0,
    info = ARGV[7],
  })
end
store(lock)
return queued(lock, place)
