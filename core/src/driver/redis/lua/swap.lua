-- KEYS: cell. ARGV: the version expected (0: nothing), writer, life in ms (0: for ever), then the value unless it goes.
local cell = call('HMGET', KEYS[1], 't', 's', 'v')
local trail = cell[1] or ''
local last = tonumber(string.sub(trail, 1, 16)) or 0
if last ~= ARGV[1] + 0 then return { cell[1] or 0, (cell[2] or 0) + 0, cell[3], now } end

local version, life = math.max(last + 1, now), ARGV[3] + 0
if version > TOKEN_MAX then error('fencelock: no token is left') end
trail = string.format('%016.0f', version) .. ARGV[2] .. string.sub(trail, 1, TRAIL_REST)
if ARGV[4] then
  call('HSET', KEYS[1], 't', trail, 's', now, 'v', ARGV[4])
else
  call('HSET', KEYS[1], 't', trail, 's', now)
  call('HDEL', KEYS[1], 'v')
end
if life == 0 then
  call('PERSIST', KEYS[1])
else
  -- Where the counter is ahead of the clock, it is kept until the clock has passed it.
  call('PEXPIRE', KEYS[1], math.ceil(math.max(life, (version - now) / 1000 + TOMBSTONE_LIFE)))
end
return { version, now }
