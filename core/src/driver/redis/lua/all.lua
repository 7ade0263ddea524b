-- Takes of several mutexes as one. KEYS: lock, record, and so on. ARGV: as for a Take, and so on.
local locks, replies, free = {}, {}, true
for at = 1, #KEYS / 2 do
  me = ARGV[5 * at - 4]
  local lock = read(KEYS[2 * at - 1], KEYS[2 * at], UNDER(KEYS[2 * at - 1]), me)
  locks[at] = lock
  local tombstone = lock.tombstone and lock.tombstone > now
  local other = not tombstone and enter(lock)
  local ticket = not tombstone and not other and admits(lock) and head(lock)
  if tombstone then
    replies[at] = { GONE }
  elseif other then
    replies[at] = { CONFLICT, other }
  elseif ticket == nil or ticket and (is_open(lock, ticket) or ticket.owner == me) or held(lock, me) then
    -- There is a token for each, or nothing is written.
    next_token(lock)
    replies[at] = { GRANTED }
  else
    replies[at] = { HELD, -1 }
  end
  free = free and replies[at][1] == GRANTED
end

local words = {}
for at, lock in ipairs(locks) do
  local reply = replies[at]
  if free then
    local argument = 5 * at - 4
    me, ttl, channel, info = ARGV[argument], ARGV[argument + 1] + 0, ARGV[argument + 3], ARGV[argument + 4]
    wait, block, floor = TERMS(ARGV[argument + 2])
    reached = floor > lock.last and math.min(floor, math.max(lock.last, now + FLOOR_AHEAD)) or lock.last
    reply = take(lock)
    if type(reply) == 'number' then reply = { GRANTED, reply, ttl, block } end
  elseif reply[1] == GRANTED then
    reply = { GONE }
  end
  for word = 1, 5 do
    words[5 * at - 5 + word] = reply[word] or 0
  end
end
return words
