-- A Free and the Take behind it, of one lock. ARGV: as for the Take; the owner that frees, whether to leave the lock open.
local holder = call('GET', KEYS[1])
if plain and holder == ARGV[6] then
  call('HSET', KEYS[2], 'c', struct.pack('<dd', top, kept), 'h', me .. struct.pack('<dd', token, now) .. info)
  call('SET', KEYS[1], me, 'PX', ARGV[2])
  return token
end
