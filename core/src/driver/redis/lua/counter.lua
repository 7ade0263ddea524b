-- KEYS: lock, record. ARGV: owner, ttl in ms, whether to wait with the tokens to draw and the floor, channel, info.
local me, ttl = ARGV[1], ARGV[2] + 0
local wait, block, floor = TERMS(ARGV[3])
local channel, info = ARGV[4], ARGV[5]
local counter = call('HGET', KEYS[2], 'c')
local reached, kept = 0, 0
if counter then
  if string.byte(counter, 17) ~= LAYOUT then error('fencelock: another layout') end
  reached, kept = struct.unpack('<dd', counter)
end
if floor > reached then reached = math.min(floor, math.max(reached, now + FLOOR_AHEAD)) end
