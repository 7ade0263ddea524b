-- KEYS: lock, record. ARGV: owner, whether to leave the lock open.
local me = ARGV[1]
local holder = redis.call('GET', KEYS[1])
local counter = redis.call('HGET', KEYS[2], 'u')
-- Nobody waits.
if not counter or counter + 0 > 0 then
  if holder ~= me then return GONE end
  redis.call('DEL', KEYS[1])
  return FREED
end
