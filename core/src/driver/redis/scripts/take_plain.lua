-- The plain Take of a mutex (the arguments are in take.lua): nobody has it, waits for it or has a tombstone, and the record is kept for
-- long enough. Then the lock is the owner id with the lease as its expiry, and the record one field.
local counter = redis.call('HGET', KEYS[2], 'c')
if counter then
  local last, kept, layout = struct.unpack('<ddB', counter)
  local token, ttl = now > last and now or last + 1, ARGV[2] + 0
  local top = token + ARGV[4] - 1
  -- `kept` is negative where the long way has to be gone. A block reaches 10 ms ahead of the clock at most, that of a vote 1 s.
  if kept >= top + ttl * 10000 and ARGV[5] + 0 < token and layout == 1 and top <= 9007199254740991
    and (top == token or top <= now + (ARGV[12] and 1000000 or 10000)) then
    local noted = struct.pack('<ddBc32ddd', top, kept, 1, ARGV[1], token, now, ttl) .. ARGV[7]
    if (ARGV[8] or '') == '' then
      if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
        local written = redis.pcall('HSET', KEYS[2], 'c', noted)
        if type(written) ~= 'table' then return token end
        redis.call('DEL', KEYS[1])
        return written
      end
    elseif redis.call('GET', KEYS[1]) == ARGV[8] then
      -- The owner that frees it passes it on.
      redis.call('HSET', KEYS[2], 'c', noted)
      redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
      return token
    end
  end
end
