-- KEYS: lock, record. ARGV: owner, life of the tombstone in µs or 0; in a dialect with a prefix whom to wake.
local me, life = ARGV[1], ARGV[2] + 0
local lock = read(KEYS[1], KEYS[2], UNDER(KEYS[1]), me)
local other = enter(lock)
local mine = not other and remove_holder(lock, me)
-- Tickets that have ended are not found, whether the record has been forgotten with them or not.
local place = not other and head(lock) and string.find(lock.queue, me, 1, true)
if place then drop(lock, place, me) end
if life > 0 and not mine and not place then
  lock.laid = now + life
  put(lock, 'x' .. me, lock.laid)
  if not lock.due or lock.laid < lock.due then
    lock.due = lock.laid
    put(lock, 'b', lock.due)
  end
  lock.turned = true
  keep(lock, lock.laid)
end
if not other then
  settle(lock, me)
  if place == 1 then tell_open(lock) end
end
store(lock)
return (mine or place) and FREED or GONE
