-- KEYS: lock, record. ARGV: owner, mode, channel, info.
local me, mode = ARGV[1], ARGV[2] + 0
local lock = read(KEYS[1], KEYS[2], UNDER(KEYS[1]), me)
if enter(lock) then return GONE end
local all, place = watchers(lock), nil
if lock.queue == '' and admits(lock, mode, 1) and not gives_way(lock, all, mode) then return GONE end
for at, watcher in ipairs(all) do
  if watcher[1] == me then place = at end
end
if place then
  all[place][2], all[place][5] = mode, now
else
  place = #all + 1
  all[place] = { me, mode, ARGV[3], now, now, ARGV[4] }
end
note_watchers(lock, all)
store(lock)
return queued(lock, place - 1)
