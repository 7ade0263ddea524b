-- A Free and the Take behind it, of one lock. ARGV: as for the Take; the owner that frees, whether to leave the lock open.
local holder = call('GET', KEYS[1])
if plain and holder == ARGV[6] then
  call('HSET', KEYS[2], 'c', struct.pack('<ddB', top, kept, LAYOUT), 'h', me .. struct.pack('<ddd', token, now, ARGV[2] + 0) .. info)
  call('SET', KEYS[1], me, 'PX', ARGV[2])
  return token
end
