-- Ends a hold of a lock in hand. Answers what became of it.
local function free(lock, owner, open)
  if enter(lock) then return GONE end
  local mine = remove_holder(lock, owner)
  local ticket = mine and open and head(lock)
  if ticket and ticket.passed < PASSES and admits(lock, ticket.mode, ticket.limit, ticket.permits) then
    lock.open, lock.opened = now, true
    announce_later(lock, ticket.channel, 'o' .. ticket.owner)
  end
  settle(lock, owner)
  return mine and FREED or GONE
end
