-- The rules of who asks for a lock: by a Take, or by a Refresh of a ticket.
function Lock.write(lock, ticket)
  lock:put('w' .. ticket.owner, struct.pack('<dBdddBdHs', ticket.refreshed, ticket.passed, ticket.ttl, ticket.block, ticket.since,
    ticket.mode, ticket.limit, ticket.permits, ticket.channel) .. ticket.info)
  lock:keep(now + 5000000)
end

-- The answer to one that waits at this place of the queue.
function Lock.queued(lock, place)
  return { 2, lock.last, lock:left(), (place - 1) / 33, lock:foreign() and 1 or 0 }
end

-- Grants an open or free lock to who asks, passing over the head of the queue.
function Lock.grant(lock, me, mode, permits, ttl, block, info)
  local first = lock:next_token()
  lock:add_holder(me, mode, ttl, block, info, first, ttl, permits)
  -- An open lock was entered: whoever may hold beside the one who entered is granted.
  if lock.serves ~= 1 then lock:settle(me) end
  lock:store()
  return first
end

-- Asks for a lock in hand, and writes what has changed of it. `ask` has owner, ttl, wait, block, floor, channel, info, mode, limit,
-- permits, lead.
function Lock.take(lock, ask)
  local me, ttl, other = ask.owner, ask.ttl, lock:enter()
  if lock.tombstone and lock.tombstone > now then
    lock:store()
    return 5 -- gone
  end
  if other then return { 6, other } end -- conflict
  if ask.floor > lock.last then
    local reached = math.min(ask.floor, math.max(lock.last, now + 60000000))
    if reached > lock.last then
      lock.last, lock.turned = reached, true
    end
  end
  if ask.floor > 0 then lock:keep(math.max(lock.last, now) + ttl * 10000) end
  lock:settle(me)
  local first, rest = lock:held(me)
  if first then
    lock:store()
    return { 1, first, rest }
  end
  local place = string.find(lock.queue, me, 1, true)
  local ticket = lock:admits(ask.mode, ask.limit, ask.permits) and lock:head()
  if ticket == nil or ticket and lock:is_open(ticket) then
    -- Nobody waits, or the lock is open: this owner passes the head over, unless it is the head.
    if place then lock:drop(place, me) end
    if ticket and ticket.owner ~= me then
      ticket.passed = ticket.passed + 1
      lock:write(ticket)
    end
    local block = Lock.drawn(lock:next_token(), ask.block, ask.lead)
    first = lock:grant(me, ask.mode, ask.permits, ttl, block, ask.info)
    return block == ask.block and first or { 1, first, ttl, block }
  end
  if ask.wait == '0' then
    lock:store()
    return { 3, lock:left() } -- held
  end
  if not place then
    place = #lock.queue + 1
    lock.queue = lock.queue .. me .. ','
    lock.moved, lock.turned = true, true
    lock:write({
      owner = me, refreshed = now, passed = 0, ttl = ttl, block = ask.block, since = now, mode = ask.mode, limit = ask.limit,
      permits = ask.permits, channel = ask.channel, info = ask.info,
    })
  end
  lock:store()
  return lock:queued(place)
end
