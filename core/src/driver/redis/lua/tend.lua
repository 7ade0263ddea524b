-- Renew and Refresh of many locks. KEYS: lock, record, and so on. ARGV: owner, ttl in ms, 1 for a Refresh, and so on.
local function tend(key, record, me, ttl, refresh)
  local lock = read(key, record, call('GET', key), me)
  settle(lock, me)
  if lock.holder == me and lock.owner == me then
    local rest = left(lock)
    -- Never nearer. A hold whose end somebody took away gets one again.
    if lock.granted then
      lock.granted = math.max(rest, ttl)
    elseif rest < ttl then
      call('PEXPIRE', key, ttl)
    end
    rest = math.max(rest, ttl)
    keep(lock, now + (rest + ttl * COUNTER_TTLS) * 1000)
    store(lock)
    return { GRANTED, lock.first, rest, 0, 0 }
  end
  local place = refresh and string.find(lock.queue, me, 1, true)
  if not place then
    store(lock)
    return { GONE, 0, 0, 0, 0 }
  end
  local ticket = ticket_of(lock, me)
  if place == 1 and not lock.holder and is_open(lock, ticket) then
    drop(lock, place, me)
    grant(lock, me, ttl, ticket.block, ticket.info, next_token(lock))
    store(lock)
    return { GRANTED, lock.first, ttl, 0, 0 }
  end
  ticket.refreshed, ticket.ttl = now, ttl
  write(lock, ticket)
  store(lock)
  return queued(lock, place)
end

local replies = {}
for at = 1, #KEYS / 2 do
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
