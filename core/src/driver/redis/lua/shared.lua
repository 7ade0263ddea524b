-- A lock that several may hold. In the own layout a mark lies under the lock, so that others are kept out, until the last
-- hold ends at the latest. The record says who holds: in `H` the soonest end, then of each hold owner, mode and end (who is no plain
-- reader comes first); in `h<owner>` its token, since when, the number of its newest change, and info.
local byte = string.byte

local function ends_at(lock, at)
  return (struct.unpack('<d', lock.holds, at + 33))
end

-- Puts `one` (a hold, or nothing) where `length` characters lie now.
local function splice(lock, at, length, one)
  local ended = length > 0 and ends_at(lock, at)
  lock.holds, lock.changed = sub(lock.holds, 1, at - 1) .. one .. sub(lock.holds, at + length), true
  if ended == lock.soonest then
    lock.soonest = nil
    for other = 1, #lock.holds, HOLD_SIZE do
      local ends = ends_at(lock, other)
      if not lock.soonest or ends < lock.soonest then lock.soonest = ends end
    end
  end
end

local function write_hold(lock, at, length, owner, mode, ends)
  splice(lock, at, length, owner .. string.char(mode) .. struct.pack('<d', ends))
  if not lock.soonest or ends < lock.soonest then lock.soonest = ends end
  if not lock.latest or ends > lock.latest then lock.latest = ends end
  TOUCHED
end

local function remove_hold(lock, at)
  local owner = sub(lock.holds, at, at + 31)
  erase(lock, 'h' .. owner)
  TOUCHED
  splice(lock, at, HOLD_SIZE, '')
end

-- Removes what has ended, and what vanished from under the lock; a mark has taken all holds with it.
local function expire(lock)
  local void = SOME_VOID
  if lock.holds == '' or not void and lock.soonest > now then return end
  for at = #lock.holds - HOLD_SIZE + 1, 1, -HOLD_SIZE do
    if THIS_VOID or ends_at(lock, at) <= now then
      remove_hold(lock, at)
      close(lock)
    end
  end
end

local function admits(lock, mode, limit)
  if KEEPS_OUT(lock, mode, limit) then return false end
  if lock.holds == '' then return true end
  if mode == MODE_PERMIT then return #lock.holds / HOLD_SIZE < limit end
  local first = byte(lock.holds, 33)
  if mode == MODE_WRITE or first == MODE_WRITE or first == MODE_UPGRADING then return false end
  return mode == MODE_READ or first ~= MODE_UPGRADEABLE
end

local function describe(lock, owner, token, since, turn, info)
  lock.described = lock.described or {}
  lock.described[owner] = { token, since, turn, info }
  put(lock, 'h' .. owner, struct.pack('<ddd', token, since, turn) .. info)
end

local function details(lock, owner)
  local known = lock.described and lock.described[owner]
  if known then return unpack(known) end
  local packed = call('HGET', lock.record, 'h' .. owner)
  local token, since, turn, at = struct.unpack('<ddd', packed)
  return token, since, turn, sub(packed, at)
end

local function seat(lock, owner, mode, ttl, block, info, first)
  local ends = now + ttl * 1000
  lock.last, lock.turned = first + block - 1, true
  local at = mode == MODE_UPGRADEABLE and 1 or #lock.holds + 1
  write_hold(lock, at, 0, owner, mode, ends)
  describe(lock, owner, first, now, 0, info)
  close(lock)
  keep(lock, lock.last + ttl * 1000 * COUNTER_TTLS)
end

local function unseat(lock, owner)
  local at = find(lock, owner)
  if at then remove_hold(lock, at) end
  return at
end

local function rest_of(ends)
  return math.floor((ends - now) / 1000)
end

-- Milliseconds left of the hold that ends first; -1 if it has no end.
local function left(lock)
  if foreign(lock) then return call('PTTL', lock.key) end
  return lock.soonest and rest_of(lock.soonest) or 0
end

local function held(lock, owner)
  local at = find(lock, owner)
  if at then return details(lock, owner), rest_of(ends_at(lock, at)) end
end

local function prolong(lock, owner, ttl)
  local at = find(lock, owner)
  if not at then return nil end
  local ends = math.max(ends_at(lock, at), now + ttl * 1000)
  if ends > ends_at(lock, at) then write_hold(lock, at, HOLD_SIZE, owner, byte(lock.holds, at + 32), ends) end
  keep(lock, ends + ttl * COUNTER_TTLS * 1000)
  return details(lock, owner), rest_of(ends)
end

-- Makes the hold at this place the writer's, with a new token. Answers it.
local function become_writer(lock, at, turn)
  local owner, ends = sub(lock.holds, at, at + 31), ends_at(lock, at)
  local _, since, known, info = details(lock, owner)
  local token = next_token(lock)
  lock.last, lock.turned = token, true
  write_hold(lock, at, HOLD_SIZE, owner, MODE_WRITE, ends)
  describe(lock, owner, token, since, turn or known, info)
  keep(lock, token + (ends - now) * COUNTER_TTLS)
  return token
end

-- The last of the others is gone: whoever waits to become the writer is, and may ask.
local function finish_upgrade(lock)
  if #lock.holds == HOLD_SIZE and byte(lock.holds, 33) == MODE_UPGRADING and not KEEPS_OUT(lock, MODE_WRITE) then
    local channel = call('HGET', lock.record, 'g')
    -- A server that takes no writes says so here, before anybody is told.
    call('HDEL', lock.record, 'g')
    redis.pcall('PUBLISH', channel, 'o' .. sub(lock.holds, 1, 32))
    become_writer(lock, 1)
  end
end

local function busy(lock)
  return lock.holds ~= ''
end

-- Notes in the record who holds.
local function note(lock)
  if lock.changed then
    if lock.holds == '' then
      erase(lock, 'H')
      erase(lock, 'g')
    else
      put(lock, 'H', struct.pack('<d', lock.soonest) .. lock.holds)
    end
  end
  if lock.changed or lock.moved then
    lock.turned = true
    if lock.holds == '' and lock.queue == '' then erase(lock, 'k') else put(lock, 'k', THIS_KIND) end
  end
end
