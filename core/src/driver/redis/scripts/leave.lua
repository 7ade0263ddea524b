-- Takes an attempt back, whatever became of it. KEYS, ARGV and answer: as for a Free (free.lua), but ARGV[2] is the life of a tombstone in
-- µs, or 0. It is laid where nothing of the attempt is found, and refuses a Take that arrives late.
local me, life = ARGV[1], ARGV[2] + 0
local lock = Lock.read(KEYS[1], KEYS[2], me)
lock.wakes_list, lock.wakes_channel = ARGV[3], ARGV[4]
local other = lock:enter()
local mine = not other and lock:remove_holder(me)
-- Tickets that have ended are not found, whether the record has been forgotten with them or not.
local place = not other and lock:head() and string.find(lock.queue, me, 1, true)
if place then lock:drop(place, me) end
if life > 0 and not mine and not place then
  lock.laid = now + life
  lock:put('x' .. me, lock.laid)
  if not lock.due or lock.laid < lock.due then
    lock.due = lock.laid
    lock:put('b', lock.due)
  end
  lock.turned = true
  lock:keep(lock.laid)
end
if not other then
  lock:settle(me)
  -- The next one is told that the lock is open, if it is.
  local ticket = place == 1 and lock:head()
  if ticket and lock:is_open(ticket) and lock:admits(ticket.mode, ticket.limit, ticket.permits) then
    lock:announce_later(ticket.channel, 'o' .. ticket.owner)
  end
end
lock:store()
return (mine or place) and 4 or 5
