-- Where the hold of an owner stands among those of a lock that several may hold.
local function find(lock, owner)
  local at = 0
  repeat
    at = string.find(lock.holds, owner, at + 1, true)
  until not at or at % HOLD_SIZE == 1
  return at
end
