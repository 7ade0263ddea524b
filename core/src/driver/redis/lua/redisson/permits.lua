-- Redisson's expirable permits: under the lock how many are free, beside it who has the others and until when, in ms.
local under_hash = under
local function under(key)
  local value = redis.pcall('GET', key)
  -- Perhaps a lock of ours of another kind.
  if type(value) == 'table' then return under_hash(key) end
  -- What is no number is no semaphore; this refuses it as the server would.
  if value and not tonumber(value) then call('HLEN', key) end
  local all, ends = call('ZRANGE', beside(key, 'timeout'), 0, -1, 'WITHSCORES'), {}
  for at = 1, #all, 2 do
    ends[all[at]] = all[at + 1] + 0
  end
  beneath[key] = { free = tonumber(value), ends = ends }
  return value and MARK_SEMAPHORE
end

-- Of a lock of no other kind; whatever else lies there is refused by the server.
local function permits(lock)
  local all = beneath[lock.key]
  if not all.ends then call('GET', lock.key) end
  return all
end

local function vanished(lock, at)
  local all = permits(lock)
  return not all.free or not all.ends[sub(lock.holds, at, at + 31)]
end

-- Before anything changes: counts our permits that are there, and finds what others have let end. Answers whether
-- somebody took one of ours away.
local function some_vanished(lock)
  local all, ours, gone = permits(lock), {}, false
  all.ours, all.ended = 0, {}
  for at = 1, #lock.holds, HOLD_SIZE do
    local there = not vanished(lock, at)
    ours[sub(lock.holds, at, at + 31)] = true
    if there then all.ours = all.ours + 1 else gone = true end
  end
  for member, ends in pairs(all.ends) do
    if not ours[member] then
      all.others = true
      if ends <= now / 1000 then all.ended[#all.ended + 1] = member end
    end
  end
  return gone
end

local function free_now(lock)
  local all = permits(lock)
  -- Who came from another kind has not looked.
  if not all.ours then some_vanished(lock) end
  return all.free + #all.ended + all.ours - #lock.holds / HOLD_SIZE
end

-- Permits of the kind without a lease show by their lack alone.
local function foreign(lock)
  local all = permits(lock)
  return all.free and (all.others or lock.holds == '' and free_now(lock) < 1) or false
end

-- Whoever comes first says how many there are.
local function keeps_out(lock, _, limit)
  if permits(lock).free then return free_now(lock) < 1 end
  lock.limit = limit
  return false
end

local function commit(lock)
  local all, key, held = permits(lock), beside(lock.key, 'timeout'), {}
  local more = all.free and free_now(lock) - all.free
  for _, member in ipairs(all.ended or {}) do
    call('ZREM', key, member)
  end
  for at = 1, #lock.holds, HOLD_SIZE do
    local owner = sub(lock.holds, at, at + 31)
    held[owner] = true
    if lock.touched[owner] then
      call('ZADD', key, string.format('%.0f', math.ceil(struct.unpack('<d', lock.holds, at + 33) / 1000)), owner)
    end
  end
  for owner in pairs(lock.touched) do
    if not held[owner] then call('ZREM', key, owner) end
  end
  if not more then
    if lock.holds ~= '' then call('SET', lock.key, lock.limit - #lock.holds / HOLD_SIZE) end
  elseif more ~= 0 then
    local value = call('INCRBY', lock.key, more)
    if more > 0 then announce(named('redisson_sc', lock.key), value) end
  end
end
