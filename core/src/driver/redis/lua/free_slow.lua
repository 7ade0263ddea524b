local lock = lock_of(KEYS[1], KEYS[2], value, fields)
local mine = value == me
if mine then
  release(lock)
  local ticket = head(lock)
  if ARGV[2] == '1' and ticket and ticket.passed < PASSES then
    call('DEL', lock.key)
    lock.released = false
    lock.open = now
    set(lock, 'm', text(now))
    tell(ticket, 'o' .. ticket.owner)
  end
end
settle(lock, me)
store(lock)
return { mine and FREED or GONE }
