-- The vote of one node of a quorum. KEYS: lock, record, birth mark. ARGV: as for a Take; then for how long the node must
-- have kept its data, in µs, and 1 from who holds already.
local again = ARGV[#ARGV] == '1'
local born = call('GET', KEYS[3])
born = born and tonumber(string.match(born, ' (%d+)$'))
if not born then return { UNBORN, 0 } end
born = born + ARGV[#ARGV - 1]
if now < born then return { RECOVERING, math.ceil((born - now) / 1000) } end
if again and not UNDER(KEYS[1]) then return GONE end
