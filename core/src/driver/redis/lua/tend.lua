-- Renew and Refresh of many locks. KEYS: lock, record, and so on, then what lies beside them. ARGV: owner, ttl in ms, 1 for a Refresh, and so on.
local function tend(key, record, me, ttl, refresh)
  local lock = read(key, record, UNDER(key), me)
  if enter(lock) then return { GONE, 0, 0, 0, 0 } end
  settle(lock, me)
  local first, rest = prolong(lock, me, ttl)
  if first then
    store(lock)
    return { GRANTED, first, rest, 0, 0 }
  end
  local place = refresh and string.find(lock.queue, me, 1, true)
  if not place then
    store(lock)
    return { GONE, 0, 0, 0, 0 }
  end
  local ticket = ticket_of(lock, me)
  if place == 1 and is_open(lock, ticket) and admits(lock, ticket.mode, ticket.limit) then
    drop(lock, place, me)
    first = next_token(lock)
    seat(lock, me, ticket.mode, ttl, ticket.block, ticket.info, first)
    store(lock)
    return { GRANTED, first, ttl, 0, 0 }
  end
  ticket.refreshed, ticket.ttl = now, ttl
  write(lock, ticket)
  store(lock)
  return queued(lock, (place - 1) / 33)
end

local replies = {}
for at = 1, #ARGV / 3 do
  local argument = 3 * at - 2
  -- One lock that is none must not fail the others.
  local ok, reply = pcall(tend, KEYS[2 * at - 1], KEYS[2 * at], ARGV[argument], ARGV[argument + 1] + 0,
    ARGV[argument + 2] == '1')
  if not ok then reply = { FAILED, type(reply) == 'table' and reply.err or tostring(reply), 0, 0, 0 } end
  for word = 1, 5 do
    replies[5 * at - 5 + word] = reply[word]
  end
end
return replies
