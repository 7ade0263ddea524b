-- KEYS: lock, record. ARGV: owner, whether to leave the lock open; in a dialect with a prefix whom to wake (see wake.lua).
local me = ARGV[1]
local holder = call('GET', KEYS[1])
local counter = call('HGET', KEYS[2], 'c')
-- The number that says until when the record is kept has no minus: nobody waits.
if not counter or string.byte(counter, 16) < 128 and string.byte(counter, 17) == LAYOUT then
  if holder ~= me then return GONE end
  call('DEL', KEYS[1])
  WAKE_NEIGHBOURS
  return FREED
end
