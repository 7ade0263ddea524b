local lock = read(KEYS[1], KEYS[2], holder, me)
local mine = holder == me
if mine then
  lock.holder, lock.released = false, true
  local ticket = ARGV[2] == '1' and head(lock)
  if ticket and ticket.passed < PASSES then
    call('DEL', lock.key)
    lock.released = false
    lock.open = now
    put(lock, 'm', text(now))
    tell(ticket, 'o' .. ticket.owner)
  end
end
settle(lock, me)
store(lock)
return mine and FREED or GONE
