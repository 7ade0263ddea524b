
-- The lock goes to whoever comes first.
if plain and redis.call('SET', KEYS[1], me, 'NX', 'PX', ARGV[2]) then
  local noted = redis.pcall('HSET', KEYS[2], 'o', me, 'f', token, 's', now, 'i', ARGV[7], 'l', top)
  if type(noted) ~= 'table' then return token end
  redis.call('DEL', KEYS[1])
  return noted
end
