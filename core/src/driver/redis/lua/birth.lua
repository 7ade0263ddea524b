-- Since when this server has kept its data, as its birth mark says: the run it is in, and a moment. KEYS: birth mark.
-- ARGV: 1 if the mark was there in this run, and is gone: somebody flushed the data.
local info = call('INFO', 'server')
local run = string.match(info, 'run_id:(%x+)')
local up = tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
local mark = call('GET', KEYS[1])
if mark and string.sub(mark, 1, #run + 1) == run .. ' ' then return 1 end
-- Another run may have started from data that was older than what it knew; a first run may have had one before it.
local born = ARGV[1] == '1' and now or now - up * 1000000
call('SET', KEYS[1], run .. string.format(' %.0f', born))
return 0
