-- Redisson's read-write lock: `mode`, a field `<holder>` for each reader, `<holder>:write` for the writer. Of every
-- reader there is a key besides, which lives as long as its lease; the lock itself lives as long as the longest.

local function lease_of(key, field, number)
  return beside(key, field .. ':rwlock_timeout:' .. number)
end

-- Whether a field is a hold of ours, or was until now. Threads 0 that the record does not know are somebody else's.
local function is_ours(lock, field)
  local owner = owner_of(field)
  return owner and (lock.touched[owner] or lock:ends_of(owner))
end

-- For how long one of theirs holds it: a writer as long as the lock lives, a reader as long as a key of its own does. The
-- field of a reader that died stays.
local function left_of(lock, field, count)
  if beneath[lock.key].mode ~= 'read' then return redis.call('PTTL', lock.key) end
  local rest = 0
  for number = 1, tonumber(count) or 0 do
    local left = redis.pcall('PTTL', lease_of(lock.key, field, number))
    -- In a slot on its way elsewhere what is not here may be there: it may last as long as the lock.
    rest = math.max(rest, type(left) == 'number' and left or redis.call('PTTL', lock.key))
  end
  return rest
end

local function writes(lock, owner)
  return owner == lock.writer
end

local function held_field(lock, owner)
  local field = field_of(owner)
  return writes(lock, owner) and field .. ':write' or field
end

function Lock.foreign(lock)
  if lock.is_foreign == nil then
    local fields = beneath[lock.key] or {}
    lock.is_foreign, lock.theirs, lock.dead = next(fields) ~= nil and not fields.mode, 0, {}
    for field, count in pairs(fields) do
      if fields.mode and field ~= 'mode' and not is_ours(lock, field) then
        local rest = left_of(lock, field, count)
        if fields.mode ~= 'read' or rest > 0 then
          lock.is_foreign, lock.theirs = true, math.max(lock.theirs, rest)
        else
          lock.dead[#lock.dead + 1] = field
        end
      end
    end
  end
  return lock.is_foreign
end

function Lock.keeps_out(lock, mode)
  return lock:foreign() and (beneath[lock.key].mode ~= 'read' or mode == 3)
end

-- Whether somebody took this hold of ours away.
function Lock.vanished(lock, owner)
  return not (beneath[lock.key] and beneath[lock.key][held_field(lock, owner)])
end

function Lock.some_vanished(lock)
  -- Theirs are looked at before anything is written: in a slot that is on its way elsewhere this may be refused.
  lock:foreign()
  for _, owner in ipairs(lock:owners()) do
    if lock:vanished(owner) then return true end
  end
  return false
end

-- The first wakes all who wait already; the second is kept for one who is just about to.
local function wake_all(lock)
  announce(named('redisson_rwlock', lock.key), '1')
  announce(named('redisson_rwlock', lock.key), '0')
end

-- Removes what is ours and held no longer, and who died reading.
local function clear(lock, fields, wanted)
  lock:foreign()
  for _, field in ipairs(lock.dead) do
    redis.call('HDEL', lock.key, field)
  end
  for field in pairs(fields) do
    if fields.mode and is_ours(lock, field) and not wanted[field] then
      -- It may have ended, and a slot on its way elsewhere has nothing to say of what is not there.
      redis.pcall('DEL', lease_of(lock.key, field, 1))
      redis.call('HDEL', lock.key, field)
      fields[field] = nil
    end
  end
end

function Lock.commit(lock)
  if not lock.changed then return end
  local key, fields = lock.key, beneath[lock.key] or {}
  local wanted, mode, longest = {}, 'read', 0
  local all, ends = lock:owners()
  for at, owner in ipairs(all) do
    local field = held_field(lock, owner)
    local rest = math.ceil((ends[at] - now) / 1000)
    wanted[field], longest = true, math.max(longest, rest)
    if writes(lock, owner) then
      mode = 'write'
    elseif not fields[field] or lock.touched[owner] then
      -- Before the lock itself: should this be refused, nothing without an end is left behind.
      redis.call('SET', lease_of(key, field, 1), 1, 'PX', rest)
    end
    if not fields[field] then redis.call('HSET', key, field, 1) end
    fields[field] = fields[field] or '1'
  end
  clear(lock, fields, wanted)
  if lock.count > 0 then
    if fields.mode ~= mode then redis.call('HSET', key, 'mode', mode) end
    -- Also nearer: whoever stays may be dead, and others wait for the end of what is here.
    longest = math.max(longest, lock.theirs)
    if redis.call('PTTL', key) ~= longest then redis.call('PEXPIRE', key, longest) end
    if fields.mode == 'write' and mode == 'read' then wake_all(lock) end
    -- For what is written behind this.
    fields.mode, beneath[key] = mode, fields
  elseif lock:foreign() then
    if fields.mode == 'read' then redis.call('PEXPIRE', key, lock.theirs) end
  elseif redis.call('DEL', key) == 1 then
    beneath[key] = nil
    wake_all(lock)
  end
end
