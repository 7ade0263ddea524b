-- What Redisson's readers and writer let ours do, and how ours stand among them.

local function writes(lock, owner)
  return owner == lock.writer
end

local function held_field(lock, owner)
  local field = field_of(owner)
  return writes(lock, owner) and field .. ':write' or field
end

local function foreign(lock)
  if lock.foreign == nil then
    local fields = beneath[lock.key] or {}
    lock.foreign, lock.theirs, lock.dead = next(fields) ~= nil and not fields.mode, 0, {}
    for field, count in pairs(fields) do
      if fields.mode and field ~= 'mode' and not is_ours(lock, field) then
        local rest = left_of(lock, field, count)
        if fields.mode ~= 'read' or rest > 0 then
          lock.foreign, lock.theirs = true, math.max(lock.theirs, rest)
        else
          lock.dead[#lock.dead + 1] = field
        end
      end
    end
  end
  return lock.foreign
end

local function keeps_out(lock, mode)
  return foreign(lock) and (beneath[lock.key].mode ~= 'read' or mode == MODE_WRITE)
end

-- Whether somebody took this hold of ours away.
local function vanished(lock, owner)
  return not (beneath[lock.key] and beneath[lock.key][held_field(lock, owner)])
end

local function some_vanished(lock)
  -- Theirs are looked at before anything is written: in a slot that is on its way elsewhere this may be refused.
  foreign(lock)
  for _, owner in ipairs(owners(lock)) do
    if vanished(lock, owner) then return true end
  end
  return false
end

-- The first wakes all who wait already; the second is kept for one who is just about to.
local function wake(lock)
  announce(named('redisson_rwlock', lock.key), '1')
  announce(named('redisson_rwlock', lock.key), '0')
end

-- Removes what is ours and held no longer, and who died reading.
local function clear(lock, fields, wanted)
  foreign(lock)
  for _, field in ipairs(lock.dead) do
    call('HDEL', lock.key, field)
  end
  for field in pairs(fields) do
    if fields.mode and is_ours(lock, field) and not wanted[field] then
      -- It may have ended, and a slot on its way elsewhere has nothing to say of what is not there.
      redis.pcall('DEL', lease_of(lock.key, field, 1))
      call('HDEL', lock.key, field)
      fields[field] = nil
    end
  end
end

local function commit(lock)
  if not lock.changed then return end
  local key, fields = lock.key, beneath[lock.key] or {}
  local wanted, mode, longest = {}, 'read', 0
  local all, ends = owners(lock)
  for at, owner in ipairs(all) do
    local field = held_field(lock, owner)
    local rest = math.ceil((ends[at] - now) / 1000)
    wanted[field], longest = true, math.max(longest, rest)
    if writes(lock, owner) then
      mode = 'write'
    elseif not fields[field] or lock.touched[owner] then
      -- Before the lock itself: should this be refused, nothing without an end is left behind.
      call('SET', lease_of(key, field, 1), 1, 'PX', rest)
    end
    if not fields[field] then call('HSET', key, field, 1) end
    fields[field] = fields[field] or '1'
  end
  clear(lock, fields, wanted)
  if lock.count > 0 then
    if fields.mode ~= mode then call('HSET', key, 'mode', mode) end
    -- Also nearer: whoever stays may be dead, and others wait for the end of what is here.
    longest = math.max(longest, lock.theirs)
    if call('PTTL', key) ~= longest then call('PEXPIRE', key, longest) end
    if fields.mode == 'write' and mode == 'read' then wake(lock) end
    -- For what is written behind this.
    fields.mode, beneath[key] = mode, fields
  elseif foreign(lock) then
    if fields.mode == 'read' then call('PEXPIRE', key, lock.theirs) end
  elseif call('DEL', key) == 1 then
    beneath[key] = nil
    wake(lock)
  end
end
