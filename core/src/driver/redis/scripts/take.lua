-- Asks for a lock. KEYS: lock, record; for a vote the birth mark, in Redisson's layout what lies beside. ARGV: owner, ttl in ms, 1 to wait,
-- how many tokens to draw, the floor, channel, info; then of a mutex the owner that frees it first and 1 to leave it open, of another
-- lock mode, limit and how many permits; 11 and 12 of a vote (see vote.lua); last the kind, if it is no mutex.
-- Answers the token if all is as asked for, else 1 granted, token, ttl, tokens drawn; 2 queued, counter, ttl left, tickets ahead, whether
-- the holder is foreign; 3 held, ttl left; 5 gone; 6 conflict, kind; 7 or 8 (see vote.lua). With an owner that frees
-- it: 4 freed or 5 gone, and that.
local lock = Lock.read(KEYS[1], KEYS[2], ARGV[1])
if ARGV[12] == '1' and not lock:enter() and not lock:held(ARGV[1]) then return 5 end
local mode, limit, permits, freed = 1, 1, 1, nil
if lock.serves ~= 1 then
  mode, limit, permits = ARGV[8] + 0, ARGV[9] + 0, ARGV[10] + 0
elseif (ARGV[8] or '') ~= '' then
  freed = lock:free(ARGV[8], ARGV[9] == '1')
end
local reply = lock:take({
  owner = ARGV[1], ttl = ARGV[2] + 0, wait = ARGV[3], block = ARGV[4] + 0, floor = ARGV[5] + 0, channel = ARGV[6], info = ARGV[7],
  mode = mode, limit = limit, permits = permits, lead = ARGV[12] and 1000000 or 10000,
})
return freed and { freed, reply } or reply
