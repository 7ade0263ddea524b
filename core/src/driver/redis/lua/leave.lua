-- KEYS: lock, record. ARGV: owner, life of the tombstone in µs or 0.
local me, life = ARGV[1], tonumber(ARGV[2])
local lock = lock_of(KEYS[1], KEYS[2], call('GET', KEYS[1]), read(KEYS[2], me))
local mine = lock.value == me
local place = find(lock.queue, me, 1, true)
if mine then release(lock) end
if place then drop(lock, place, me) end
if life > 0 and not mine and not place then
  set(lock, 'x' .. me, text(now + life))
  if not lock.sweep or now + life < lock.sweep then set(lock, 'b', text(now + life)) end
  keep(lock, now + life)
end
settle(lock, me)
store(lock)
return { (mine or place) and FREED or GONE }
