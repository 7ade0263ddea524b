-- KEYS: lock, record. ARGV: owner, whether to leave the lock open.
local me = ARGV[1]
local value = redis.call('GET', KEYS[1])
local fields = read(KEYS[2], me)
if not fields[3] or fields[3] == '' then
  if value ~= me then return { GONE } end
  redis.call('DEL', KEYS[1])
  return { FREED }
end
