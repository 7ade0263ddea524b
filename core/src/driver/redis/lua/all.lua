-- Takes of several mutexes as one. KEYS: lock, record, and so on. ARGV: as for a Take, and so on.
local locks, replies, free = {}, {}, true
for at = 1, #KEYS / 2 do
  local argument = 5 * at - 4
  local me, ttl = ARGV[argument], ARGV[argument + 1] + 0
  local _, block, floor = struct.unpack('<Bdd', ARGV[argument + 2])
  local lock = read(KEYS[2 * at - 1], KEYS[2 * at], call('GET', KEYS[2 * at - 1]), me)
  locks[at] = { lock = lock, me = me, ttl = ttl, block = block, floor = floor, info = ARGV[argument + 4] }
  local other = enter(lock)
  local ticket = not other and admits(lock) and head(lock)
  if lock.buried and lock.buried > now then
    replies[at] = { GONE, 0 }
  elseif other then
    replies[at] = { CONFLICT, other }
  elseif ticket == nil or ticket and is_open(lock, ticket) then
    replies[at] = { GRANTED, 0 }
  else
    replies[at] = { HELD, left(lock) }
  end
  free = free and replies[at][1] == GRANTED
end

local words = {}
for at, one in ipairs(locks) do
  local reply, lock = replies[at], one.lock
  if free then
    if one.floor > lock.last then lock.last = math.min(one.floor, math.max(lock.last, now + FLOOR_AHEAD)) end
    local ticket = head(lock)
    if ticket then
      ticket.passed = ticket.passed + 1
      write(lock, ticket)
    end
    local first = next_token(lock)
    seat(lock, one.me, MODE_EXCLUSIVE, one.ttl, one.block, one.info, first)
    store(lock)
    reply = { GRANTED, first, one.ttl }
  elseif reply[1] == GRANTED then
    reply = { GONE, 0 }
  end
  for word = 1, 5 do
    words[5 * at - 5 + word] = reply[word] or 0
  end
end
return words
