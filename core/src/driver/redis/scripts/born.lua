-- Since when this server has kept its data: the birth mark names the run of the server and a moment. KEYS: birth mark. Answers the run.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local mark = redis.call('GET', KEYS[1])
-- Without a mark of this run nobody knows what it may have forgotten: a server that was flushed, and a replica that took over, are up
-- for as long as one that never held anything.
if not mark or string.sub(mark, 1, #run + 1) ~= run .. ' ' then
  redis.call('SET', KEYS[1], run .. string.format(' %.0f', now))
end
return run
