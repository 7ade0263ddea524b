-- KEYS: lock, record. Answers whether it is held (2: by a foreign holder), token, ms left, since, info, counter, clock;
-- then info and since of every waiter.
local lock = read(KEYS[1], KEYS[2], call('GET', KEYS[1]), '')
local more = call('HMGET', lock.record, 's', 'i')
local held = lock.holder and (lock.holder == lock.owner and 1 or 2) or 0
local reply = { held, lock.first or 0, left(lock), tonumber(more[1]) or 0, more[2] or '', lock.last, now }
for at = 1, #lock.queue, 33 do
  local ticket = ticket_of(lock, sub(lock.queue, at, at + 31))
  if ticket and now < ticket.refreshed + TICKET_LIFE then
    reply[#reply + 1] = ticket.info
    reply[#reply + 1] = ticket.since
  end
end
return reply
