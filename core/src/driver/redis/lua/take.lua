-- KEYS: lock, record. ARGV: owner, ttl in ms, whether to wait, tokens to draw, floor, channel, info.
local me, ttl, block = ARGV[1], ARGV[2] + 0, ARGV[4] + 0
local counter = redis.call('HMGET', KEYS[2], 'l', 'u')
local reached, floor = (counter[1] or 0) + 0, ARGV[5] + 0
if floor > reached then reached = math.min(floor, math.max(reached, now + FLOOR_AHEAD)) end

-- Nobody waits, nobody is buried, and the record is kept for long enough: the lock goes to whoever comes first.
local token = now > reached and now or reached + 1
local top = token + block - 1
if counter[2] and counter[2] + 0 >= top + ttl * 1000 * COUNTER_TTLS
  and redis.call('SET', KEYS[1], me, 'NX', 'PX', ARGV[2]) then
  local shown = string.format('%.0f', token)
  local stored = redis.pcall('HSET', KEYS[2], 'o', me, 'f', shown, 's', token == now and shown or string.format('%.0f', now),
    'i', ARGV[7], 'l', block == 1 and shown or string.format('%.0f', top))
  if type(stored) ~= 'table' then return token end
  redis.call('DEL', KEYS[1])
  return stored
end
