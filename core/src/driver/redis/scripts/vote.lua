-- A Take with ARGV 11 and 12 is the vote of one node of a quorum: for how long the node must have kept its data, in µs, and 1 from who
-- holds already. KEYS[3]: the birth mark (see born.lua).
if ARGV[12] then
  local mark = redis.call('GET', KEYS[3])
  local born = mark and tonumber(string.match(mark, ' (%d+)$'))
  if not born then return { 7, 0 } end -- nobody knows since when
  born = born + ARGV[11]
  if now < born then return { 8, math.ceil((born - now) / 1000) } end -- recovering
  if ARGV[12] == '1' and not redis.call('GET', KEYS[1]) then return 5 end -- gone
end
