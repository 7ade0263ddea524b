-- KEYS: lock, record. ARGV: owner, ttl in ms, whether to wait, tokens to draw, floor, channel, info.
local me, ttl, block = ARGV[1], ARGV[2] + 0, ARGV[4] + 0
local counter = redis.call('HMGET', KEYS[2], 'l', 'u')
local reached, floor = (counter[1] or 0) + 0, ARGV[5] + 0
if floor > reached then reached = math.min(floor, math.max(reached, now + FLOOR_AHEAD)) end

-- What a grant would draw now.
local token = now > reached and now or reached + 1
local top = token + block - 1
-- Nobody waits, nobody is buried, and the record is kept for long enough.
local plain = counter[2] and counter[2] + 0 >= top + ttl * 1000 * COUNTER_TTLS
