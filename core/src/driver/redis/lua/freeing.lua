
-- Ends a hold of a lock in hand. Answers what became of it.
local function free(lock, owner, open)
  local mine = lock.holder == owner
  if mine then
    lock.holder, lock.released = false, true
    local ticket = open and head(lock)
    if ticket and ticket.passed < PASSES then
      call('DEL', lock.key)
      lock.released = false
      lock.open, lock.opened = now, true
      tell(ticket, 'o' .. ticket.owner)
    end
  end
  settle(lock, owner)
  return mine and FREED or GONE
end
