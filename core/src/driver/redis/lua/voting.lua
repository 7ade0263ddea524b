-- Votes: as a Take, but a reader does not enter beside others past somebody who wants to be alone.
local function vote(lock)
  if enter(lock) then return take(lock) end
  if again and not held(lock, me) then return GONE end
  if lock.watch and not (lock.tombstone and lock.tombstone > now) then
    local mode, limit = MODE_AND_LIMIT
    local all, mine = watchers(lock), held(lock, me)
    if not mine and gives_way(lock, all, mode) then
      store(lock)
      return { HELD, left(lock) }
    end
    if alone(mode) and (mine or lock.queue == '' and admits(lock, mode, limit)) then
      local others = {}
      for _, watcher in ipairs(all) do
        if watcher[3] ~= ARGV[4] then others[#others + 1] = watcher end
      end
      note_watchers(lock, others)
    end
  end
  return take(lock)
end
