-- A look at a cell, or its compare-and-set. KEYS: cell. ARGV: none for a look; else the version expected (0: nothing), writer, life in ms
-- (0: for ever), then the value unless it goes. Answers the trail (or 0: nothing there), since, value, clock; or version and clock.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local cell = redis.call('HMGET', KEYS[1], 't', 's', 'v')
local trail = cell[1] or ''
local last = tonumber(string.sub(trail, 1, 16)) or 0
if not ARGV[1] or last ~= ARGV[1] + 0 then return { cell[1] or 0, (cell[2] or 0) + 0, cell[3], now } end

local version, life = math.max(last + 1, now), ARGV[3] + 0
if version > 9007199254740991 then error('fencelock: no token is left') end
-- The newest 16 changes: 16 digits of a version and 32 of a writer each.
trail = string.format('%016.0f', version) .. ARGV[2] .. string.sub(trail, 1, 720)
if ARGV[4] then
  redis.call('HSET', KEYS[1], 't', trail, 's', now, 'v', ARGV[4])
else
  redis.call('HSET', KEYS[1], 't', trail, 's', now)
  redis.call('HDEL', KEYS[1], 'v')
end
if life == 0 then
  redis.call('PERSIST', KEYS[1])
else
  -- Where the counter is ahead of the clock, it is kept until the clock has passed it, by a minute.
  redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(life, (version - now) / 1000 + 60000)))
end
return { version, now }
