-- Redisson's expirable permits: under the lock how many are free, beside it who has the others and until when, in ms.
local under_hash = Lock.under
function Lock.under(key)
  local value = redis.pcall('GET', key)
  -- Perhaps a lock of another kind.
  if type(value) == 'table' then return under_hash(key) end
  -- A value that is no number is no semaphore; this refuses it as the server would.
  if value and not tonumber(value) then redis.call('HGETALL', key) end
  local all, ends = redis.call('ZRANGE', beside(key, 'timeout'), 0, -1, 'WITHSCORES'), {}
  for at = 1, #all, 2 do
    ends[all[at]] = all[at + 1] + 0
  end
  beneath[key] = { free = tonumber(value), ends = ends }
  return value and Lock.mark_of(3)
end

-- Of a lock of no other kind; whatever else lies there is refused by the server.
local function permits(lock)
  local all = beneath[lock.key]
  if not all.ends then redis.call('GET', lock.key) end
  return all
end

function Lock.vanished(lock, owner)
  local all = permits(lock)
  return not all.free or not all.ends[owner]
end

-- Before anything changes: counts our permits that are there and theirs, and finds what others have let end. Answers
-- whether somebody took one of ours away.
function Lock.some_vanished(lock)
  local all, ours, gone = permits(lock), {}, false
  all.ours, all.theirs, all.ended = 0, 0, {}
  for _, owner in ipairs(lock:owners()) do
    local there = not lock:vanished(owner)
    ours[owner] = true
    if there then all.ours = all.ours + 1 else gone = true end
  end
  for member, ends in pairs(all.ends) do
    if not ours[member] then
      if ends <= now / 1000 then all.ended[#all.ended + 1] = member else all.theirs = all.theirs + 1 end
    end
  end
  return gone
end

local function counted(lock)
  local all = permits(lock)
  -- A caller that came from another kind has not looked.
  if not all.ours then lock:some_vanished() end
  return all
end

-- Without a counter: of as many as whoever comes first says there are.
local function free_now(lock)
  local all = counted(lock)
  local free = all.free and all.free + #all.ended + all.ours or lock.limit - all.theirs
  return free - lock.count
end

-- Permits of the kind without a lease show by their lack alone.
function Lock.foreign(lock)
  local all = counted(lock)
  return all.theirs > 0 or all.free and lock.count == 0 and free_now(lock) < 1 or false
end

function Lock.keeps_out(lock, _, limit)
  lock.limit = lock.limit or limit
  return free_now(lock) < 1
end

function Lock.commit(lock)
  local all, key, held = counted(lock), beside(lock.key, 'timeout'), {}
  local more = all.free and free_now(lock) - all.free
  for _, member in ipairs(all.ended) do
    redis.call('ZREM', key, member)
  end
  local owned, ends = lock:owners()
  for at, owner in ipairs(owned) do
    held[owner] = true
    if lock.touched[owner] then
      redis.call('ZADD', key, string.format('%.0f', math.ceil(ends[at] / 1000)), owner)
    end
  end
  for owner in pairs(lock.touched) do
    if not held[owner] then redis.call('ZREM', key, owner) end
  end
  local free = (more or lock.count > 0) and free_now(lock)
  if not more then
    if free then redis.call('SET', lock.key, free) end
  elseif more ~= 0 then
    local value = redis.call('INCRBY', lock.key, more)
    if more > 0 then announce(named('redisson_sc', lock.key), value) end
  end
  -- For what is written behind this.
  all.free = free or all.free
  all.ours, all.ended, lock.touched = lock.count, {}, {}
end
