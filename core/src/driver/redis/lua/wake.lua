-- Wakes those who wait for the lock by another library: ARGV[3] is python-redis-lock's list, ARGV[4] the channel of
-- Spring's registry; each may be empty. A server that does not allow it, or keeps the list elsewhere, changes nothing else.
if ARGV[3] and ARGV[3] ~= '' then
  redis.pcall('DEL', ARGV[3])
  redis.pcall('LPUSH', ARGV[3], 1)
  redis.pcall('PEXPIRE', ARGV[3], SIGNAL_LIFE)
end
if ARGV[4] and ARGV[4] ~= '' then redis.pcall('PUBLISH', ARGV[4], KEYS[1]) end
