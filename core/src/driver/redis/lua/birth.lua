-- Since when this server has kept its data, as its birth mark says: the run it is in, and a moment. KEYS: birth mark.
-- Answers the run.
local run = string.match(call('INFO', 'server'), 'run_id:(%x+)')
local mark = call('GET', KEYS[1])
-- Without a mark of this run nobody knows what it may have forgotten: a server that was flushed, and a replica that took
-- over, are up for as long as one that never held anything.
if not mark or string.sub(mark, 1, #run + 1) ~= run .. ' ' then
  call('SET', KEYS[1], run .. string.format(' %.0f', now))
end
return run
