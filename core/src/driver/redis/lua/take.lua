-- The lock goes to whoever comes first.
if plain and call('SET', KEYS[1], me, 'NX', 'PX', ARGV[2]) then
  local noted = redis.pcall('HSET', KEYS[2], 'c', struct.pack('<ddB', top, kept, LAYOUT),
    'h', me .. struct.pack('<ddd', token, now, ARGV[2] + 0) .. info)
  if type(noted) ~= 'table' then return token end
  call('DEL', KEYS[1])
  return noted
end
