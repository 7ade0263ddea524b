-- Redisson's read-write lock: `mode`, a field `<holder>` for each reader, `<holder>:write` for the writer. Of every
-- reader there is a key besides, which lives as long as its lease; the lock itself lives as long as the longest.
local function field_at(lock, at)
  local field = field_of(sub(lock.holds, at, at + 31))
  return string.byte(lock.holds, at + 32) == MODE_WRITE and field .. ':write' or field
end

local function lease_of(key, field, number)
  return beside(key, field .. ':rwlock_timeout:' .. number)
end

-- Whether a field is a hold of ours, or was until now. Threads 0 that the record does not know are somebody else's.
local function is_ours(lock, field)
  local owner = owner_of(field)
  return owner and (lock.touched[owner] or string.find(lock.holds, owner, 1, true))
end

-- For how long one of theirs holds it: a writer as long as the lock lives, a reader as long as a key of its own does. The
-- field of a reader that died stays.
local function left_of(lock, field, count)
  if beneath[lock.key].mode ~= 'read' then return call('PTTL', lock.key) end
  local rest = 0
  for number = 1, tonumber(count) or 0 do
    rest = math.max(rest, call('PTTL', lease_of(lock.key, field, number)))
  end
  return rest
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
local function vanished(lock, at)
  return not (beneath[lock.key] and beneath[lock.key][field_at(lock, at)])
end

local function some_vanished(lock)
  for at = 1, #lock.holds, HOLD_SIZE do
    if vanished(lock, at) then return true end
  end
  return false
end

local function wake(lock)
  announce(named('redisson_rwlock', lock.key), '1')
end

-- Removes what is ours and held no longer, and who died reading.
local function clear(lock, fields, wanted)
  foreign(lock)
  for _, field in ipairs(lock.dead) do
    call('HDEL', lock.key, field)
  end
  for field in pairs(fields) do
    if fields.mode and is_ours(lock, field) and not wanted[field] then
      call('DEL', lease_of(lock.key, field, 1))
      call('HDEL', lock.key, field)
    end
  end
end

local function commit(lock)
  if not lock.changed then return end
  local key, fields = lock.key, beneath[lock.key] or {}
  local wanted, mode, longest = {}, 'read', 0
  for at = 1, #lock.holds, HOLD_SIZE do
    local field = field_at(lock, at)
    local rest = math.ceil((struct.unpack('<d', lock.holds, at + 33) - now) / 1000)
    wanted[field], longest = true, math.max(longest, rest)
    if string.byte(lock.holds, at + 32) == MODE_WRITE then
      mode = 'write'
    elseif not fields[field] or lock.touched[sub(lock.holds, at, at + 31)] then
      -- Before the lock itself: should this be refused, nothing without an end is left behind.
      call('SET', lease_of(key, field, 1), 1, 'PX', rest)
    end
    if not fields[field] then call('HSET', key, field, 1) end
  end
  clear(lock, fields, wanted)
  if lock.holds ~= '' then
    if fields.mode ~= mode then call('HSET', key, 'mode', mode) end
    if call('PTTL', key) < longest then call('PEXPIRE', key, longest) end
    if fields.mode == 'write' and mode == 'read' then wake(lock) end
  elseif foreign(lock) then
    if fields.mode == 'read' then call('PEXPIRE', key, lock.theirs) end
  elseif call('DEL', key) == 1 then
    wake(lock)
  end
end
