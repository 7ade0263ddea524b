-- Who is told when the lock is given back, in order of arrival: owner, mode, channel, since, refreshed, info.
local function watchers(lock)
  local live = {}
  for _, watcher in ipairs(lock.watch and cmsgpack.unpack(lock.watch) or {}) do
    if now < watcher[5] + TICKET_LIFE then live[#live + 1] = watcher end
  end
  return live
end

local function note_watchers(lock, all)
  lock.watch, lock.turned = all[1] and cmsgpack.pack(all), true
  if lock.watch then
    put(lock, 'v', lock.watch)
    keep(lock, now + TICKET_LIFE)
  else
    erase(lock, 'v')
  end
end

local function alone(mode)
  return mode == MODE_EXCLUSIVE or mode == MODE_WRITE
end

-- With nobody left, whoever wants to be alone was told, or is dead and would keep all others out.
local function gives_way(lock, all, mode)
  for _, watcher in ipairs(busy(lock) and not alone(mode) and all or {}) do
    if alone(watcher[2]) then return true end
  end
end

local function others_than(lock, owner)
  local others = {}
  for _, watcher in ipairs(watchers(lock)) do
    if watcher[1] ~= owner then others[#others + 1] = watcher end
  end
  return others
end

local function unwatch(lock, owner)
  if lock.watch then note_watchers(lock, others_than(lock, owner)) end
end

-- The lock was given back: tells the first who may hold now, and readers behind a reader. `but` watches no longer.
local function notify(lock, but)
  if not lock.watch or lock.queue ~= '' then return end
  local all, rest, told = others_than(lock, but), {}, 0
  -- A server that takes no writes says so here, before anybody is told.
  call('HDEL', lock.record, 'v')
  for at, watcher in ipairs(all) do
    local single = alone(watcher[2])
    if told < 0 or single and told > 0 or not admits(lock, watcher[2], 1) then
      -- Whoever comes later keeps the place behind.
      told = -1
      rest[#rest + 1] = watcher
    elseif tell(watcher[3], 'o' .. watcher[1]) > 0 then
      told = single and -1 or 1
    end
  end
  note_watchers(lock, rest)
end
