-- KEYS: lock, record. Answers whether it is held (2: by a foreign holder), token, ms left, since, info, counter, clock;
-- then info and since of every waiter.
local value = call('GET', KEYS[1])
local fields = read(KEYS[2], '')
local lock = lock_of(KEYS[1], KEYS[2], value, fields)
local more = call('HMGET', KEYS[2], 's', 'i')
local reply = { 0, lock.first or 0, left_of(lock), tonumber(more[1]) or 0, more[2] or '', lock.last, now }
if value then reply[1] = value == lock.owner and 1 or 2 end
for at = 1, #lock.queue, 33 do
  local ticket = ticket_of(lock, sub(lock.queue, at, at + 31))
  if ticket and now < ticket.refreshed + TICKET_LIFE then
    reply[#reply + 1] = ticket.info
    reply[#reply + 1] = tonumber(ticket.since)
  end
end
return reply
