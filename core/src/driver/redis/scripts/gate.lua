-- Refuses a token older than the newest one that has written. Put this at the head of a script of your own, hand it the
-- gate's key and the token, and go on only if it answers nil:
--   local refused = fencelock_gate(KEYS[2], ARGV[1])
--   if refused then return refused end
local function fencelock_gate(gate, token)
  local newest = redis.call('GET', gate) or '0'
  if tonumber(token) < tonumber(newest) then
    return redis.error_reply('LOST a newer holder has written since: token ' .. token .. ', newest ' .. newest)
  end
  redis.call('SET', gate, token)
end
