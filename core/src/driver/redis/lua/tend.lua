-- Renew and Refresh of many locks. KEYS: lock, record, and so on. ARGV: owner, ttl in ms, 1 for a Refresh, and so on.
local function tend(key, record, me, ttl, refresh)
  local lock = lock_of(key, record, call('GET', key), read(record, me))
  settle(lock, me)
  if holds(lock, me) then
    local granted, left = lock.left, left_of(lock)
    -- Never nearer. A hold whose end somebody took away gets one again.
    if granted then
      lock.left = math.max(granted, ttl)
    elseif left < ttl then
      call('PEXPIRE', key, text(ttl))
    end
    left = math.max(left, ttl)
    keep(lock, now + (left + ttl * COUNTER_TTLS) * 1000)
    store(lock)
    return { GRANTED, lock.first, left, 0, 0 }
  end
  local place = refresh and find(lock.queue, me, lock.from, true)
  if not place then
    store(lock)
    return { GONE, 0, 0, 0, 0 }
  end
  local ticket = ticket_of(lock, me)
  if place == lock.from and not lock.value and is_open(lock, ticket) then
    drop(lock, place, me)
    grant(lock, me, ttl, ticket.block, ticket.info)
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
  local ok, reply = pcall(tend, KEYS[2 * at - 1], KEYS[2 * at], ARGV[argument], tonumber(ARGV[argument + 1]),
    ARGV[argument + 2] == '1')
  if not ok then reply = { FAILED, type(reply) == 'table' and reply.err or tostring(reply), 0, 0, 0 } end
  for word = 1, 5 do
    replies[5 * at - 5 + word] = reply[word]
  end
end
return replies
