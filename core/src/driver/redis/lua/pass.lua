
-- A Free and the Take behind it, of one lock. ARGV: as for the Take; the owner that frees, whether to leave the lock open.
local holder = redis.call('GET', KEYS[1])
if plain and holder == ARGV[8] then
  redis.call('HSET', KEYS[2], 'o', me, 'f', token, 's', now, 'i', ARGV[7], 'l', top)
  redis.call('SET', KEYS[1], me, 'PX', ARGV[2])
  return token
end
