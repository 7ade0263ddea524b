-- The plain Free of a mutex (the arguments are in free.lua): nobody waits, or a `+` would stand behind the owner id.
local seen = redis.call('GET', KEYS[1])
if seen == ARGV[1] then
  redis.call('DEL', KEYS[1])
  if (ARGV[3] or '') ~= '' then
    redis.pcall('DEL', ARGV[3])
    redis.pcall('LPUSH', ARGV[3], 1)
    redis.pcall('PEXPIRE', ARGV[3], 1000)
  end
  if (ARGV[4] or '') ~= '' then redis.pcall('PUBLISH', ARGV[4], KEYS[1]) end
  return 4 -- freed
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
