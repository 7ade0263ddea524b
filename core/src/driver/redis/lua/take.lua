-- The lock goes to whoever comes first.
if plain and call('SET', KEYS[1], me, 'NX', 'PX', ARGV[2]) then
  local noted = redis.pcall('HSET', KEYS[2], 'c', struct.pack('<dd', top, kept),
    'h', me .. struct.pack('<dd', token, now) .. info)
  if type(noted) ~= 'table' then return token end
  call('DEL', KEYS[1])
  return noted
end
