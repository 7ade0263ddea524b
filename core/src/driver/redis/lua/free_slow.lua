local lock = lock_of(KEYS[1], KEYS[2], value, fields)
local mine = value == me
local deleted = not mine
if mine then
  lock.value = false
  local ticket = head(lock)
  if ARGV[2] == '1' and ticket and ticket.passed < PASSES then
    call('DEL', lock.key)
    deleted = true
    lock.open = now
    set(lock, 'm', text(now))
    tell(ticket, 'o' .. ticket.owner)
  end
end
settle(lock, me)
if not lock.value and not deleted then call('DEL', lock.key) end
store(lock)
return { mine and FREED or GONE }
