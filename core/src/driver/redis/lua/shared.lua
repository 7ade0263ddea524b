-- A lock that several may hold. In the own layout a mark lies under the lock, so that others are kept out, until the last
-- hold ends at the latest. The record says who holds (see holds.lua); `h<owner>` says of each its token, since when, and info.
local function write_hold(lock, owner, ends, permits)
  note_end(lock, owner, ends, permits)
  if not lock.latest or ends > lock.latest then lock.latest = ends end
  if ends > lock.farthest then lock.farthest = ends end
  TOUCHED
end

local function remove_hold(lock, owner)
  erase(lock, 'h' .. owner)
  TOUCHED
  note_end(lock, owner)
  if lock.writer == owner then lock.writer = nil end
end

-- Brings ends nearer that are further away than the longest lease asked for.
local function cut(lock)
  local most = now + lock.longest
  if lock.count == 0 or lock.farthest <= most then return end
  local all, ends = owners(lock)
  for at, owner in ipairs(all) do
    if ends[at] > most then write_hold(lock, owner, most) end
  end
  lock.farthest, lock.latest, lock.changed, lock.nearer = most, most, true, true
end

-- Removes what has ended, and what vanished from under the lock; a mark has taken all holds with it.
local function expire(lock)
  cut(lock)
  local void = SOME_VOID
  if lock.count == 0 or not void and lock.soonest > now then return end
  local all, ends = owners(lock, not void and now)
  for at, owner in ipairs(all) do
    if THIS_VOID or ends[at] <= now then
      remove_hold(lock, owner)
      close(lock)
    end
  end
end

local function admits(lock, mode, limit, permits)
  if KEEPS_OUT(lock, mode, limit) then return false end
  if mode == MODE_PERMIT then return lock.count + permits <= limit end
  if lock.count == 0 then return true end
  return mode == MODE_READ and not lock.writer
end

local function token_of(lock, owner)
  local drawn = lock.tokens and lock.tokens[owner]
  return drawn or (struct.unpack('<d', call('HGET', lock.record, 'h' .. owner)))
end

local function add_holder(lock, owner, mode, ttl, block, info, first, asked, permits)
  if lock.count == 0 then lock.farthest, lock.longest = 0, 0 end
  lock.longest = math.max(lock.longest, asked * 1000)
  lock.last, lock.turned = first + block - 1, true
  if lock.count >= CAPACITY then split(lock) end
  write_hold(lock, owner, now + ttl * 1000, permits)
  if mode == MODE_WRITE then lock.writer = owner end
  lock.tokens = lock.tokens or {}
  lock.tokens[owner] = first
  put(lock, 'h' .. owner, struct.pack('<dd', first, now) .. info)
  close(lock)
  keep(lock, lock.last + ttl * 1000 * COUNTER_TTLS)
end

local function remove_holder(lock, owner)
  local held = ends_of(lock, owner)
  if held then remove_hold(lock, owner) end
  return held
end

local function rest_of(ends)
  return math.floor((ends - now) / 1000)
end

-- Milliseconds left of the hold that ends first; -1 if it has no end.
local function left(lock)
  if foreign(lock) then return call('PTTL', lock.key) end
  return lock.count > 0 and rest_of(lock.soonest) or 0
end

local function held(lock, owner)
  local ends = ends_of(lock, owner)
  if ends then return token_of(lock, owner), rest_of(ends) end
end

local function prolong(lock, owner, ttl)
  local before = ends_of(lock, owner)
  if not before then return nil end
  if ttl * 1000 > lock.longest then lock.longest, lock.changed = ttl * 1000, true end
  local ends = math.max(before, now + ttl * 1000)
  if ends > before then write_hold(lock, owner, ends) end
  keep(lock, ends + ttl * COUNTER_TTLS * 1000)
  return token_of(lock, owner), rest_of(ends)
end

local function busy(lock)
  return lock.count > 0
end
