-- Takes of several mutexes as one: all are granted, or none is and nothing is written. KEYS: lock, record, and so on. ARGV: of each lock the
-- first seven of a Take (take.lua). Answers for each what a Take does.
local locks, replies, free = {}, {}, true
for at = 1, #KEYS / 2 do
  local me = ARGV[7 * at - 6]
  local lock = Lock.read(KEYS[2 * at - 1], KEYS[2 * at], me)
  locks[at] = lock
  local tombstone = lock.tombstone and lock.tombstone > now
  local other = not tombstone and lock:enter()
  local ticket = not tombstone and not other and lock:admits() and lock:head()
  if tombstone then
    replies[at] = 5 -- gone
  elseif other then
    replies[at] = { 6, other } -- conflict
  elseif ticket == nil or ticket and (lock:is_open(ticket) or ticket.owner == me) or lock:held(me) then
    -- There is a token for each, or nothing is written.
    lock:next_token()
    replies[at] = true
  else
    replies[at] = { 3, -1 } -- held
  end
  free = free and replies[at] == true
end

for at, lock in ipairs(locks) do
  local from = 7 * at - 6
  if free then
    replies[at] = lock:take({
      owner = ARGV[from], ttl = ARGV[from + 1] + 0, wait = ARGV[from + 2], block = ARGV[from + 3] + 0, floor = ARGV[from + 4] + 0,
      channel = ARGV[from + 5], info = ARGV[from + 6], mode = 1, limit = 1, permits = 1, lead = 10000,
    })
  elseif replies[at] == true then
    replies[at] = 5
  end
end
return replies
