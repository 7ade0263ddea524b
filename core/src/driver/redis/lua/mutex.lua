-- A mutex: what lies under the lock is the owner id of its one holder; of him the record knows first token, since, info.
local function admits(lock)
  return not lock.holder
end

-- Whether somebody holds it who is not ours.
local function foreign(lock)
  return lock.holder and lock.holder ~= lock.owner
end

local function add_holder(lock, owner, _, ttl, block, info, first, asked)
  lock.last, lock.longest = first + block - 1, asked
  lock.holder, lock.owner, lock.first, lock.granted, lock.turned = owner, owner, first, ttl, true
  lock.noted = owner .. struct.pack('<ddd', first, now, asked) .. info
  put(lock, 'h', lock.noted)
  close(lock)
  keep(lock, lock.last + ttl * 1000 * COUNTER_TTLS)
end

-- Ends a hold; whether there was one.
local function remove_holder(lock, owner)
  if lock.holder ~= owner then return false end
  lock.holder, lock.granted, lock.released = false, false, true
  return true
end

-- Milliseconds left of the hold, granted here or before; -1 if it has no end.
local function left(lock)
  if lock.granted or not lock.holder then return lock.granted or 0 end
  local rest = call('PTTL', lock.key)
  if foreign(lock) or rest <= lock.longest then return rest end
  call('PEXPIRE', lock.key, lock.longest)
  return lock.longest
end

-- First token and rest of an owner's hold, if it has one.
local function held(lock, owner)
  if lock.holder == owner and lock.owner == owner then return lock.first, left(lock) end
end

-- Pushes the end of a hold, never nearer. A hold whose end somebody took away gets one again.
local function prolong(lock, owner, ttl)
  local first, rest = held(lock, owner)
  if not first then return nil end
  if ttl > lock.longest then
    lock.longest = ttl
    put(lock, 'h', sub(lock.noted, 1, 48) .. struct.pack('<d', ttl) .. sub(lock.noted, 57))
  end
  if lock.granted then
    lock.granted = math.max(rest, ttl)
  elseif rest < ttl then
    call('PEXPIRE', lock.key, ttl)
  end
  rest = math.max(rest, ttl)
  keep(lock, now + (rest + ttl * COUNTER_TTLS) * 1000)
  return first, rest
end

local function busy()
  return false
end

-- Writes the lock itself.
local function commit(lock)
  if lock.granted then
    WRITE_HOLDER
  elseif lock.released then
    call('DEL', lock.key)
    WAKE_NEIGHBOURS
  end
end
