-- KEYS: lock, record. ARGV: owner, ttl in ms, whether to wait, tokens to draw, floor, channel, info.
local me, ttl, block = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local fields = read(KEYS[2], me)
local last = tonumber(fields[1]) or 0
local floor = math.min(tonumber(ARGV[5]), now + FLOOR_AHEAD)
if floor > last then last = floor end

-- Nobody waits and the record is kept for long enough: the lock goes to whoever comes first.
if (not fields[3] or fields[3] == '') and not fields[4] then
  local first = math.max(last + 1, now)
  local top = first + block - 1
  if (tonumber(fields[2]) or 0) >= top + ttl * 1000 * COUNTER_TTLS
    and redis.call('SET', KEYS[1], me, 'NX', 'PX', ARGV[2]) then
    local shown = string.format('%.0f', first)
    local stored = redis.pcall('HSET', KEYS[2], 'o', me, 'f', shown, 's', string.format('%.0f', now), 'i', ARGV[7],
      'l', block == 1 and shown or string.format('%.0f', top))
    if type(stored) == 'table' then
      redis.call('DEL', KEYS[1])
      return stored
    end
    return { GRANTED, first, ttl }
  end
end
