-- The rules of a lock, for scripts that go the long way. What differs by layout is in own.lua or redisson.lua, what differs by kind in
-- mutex.lua or shared.lua. Kinds: 1 mutex, 2 read-write lock, 3 semaphore; `serves` is the one that the script serves. Modes: 1 exclusive,
-- 2 read, 3 write, 4 permit. Moments are in µs, leases in ms. Reads come first and fail on a key of the wrong type; a script that has
-- written does not fail. Functions are fields of one table: as locals that name each other they would cost each run twice as much.
local Lock = { serves = 1 }
Lock.__index = Lock

-- Nobody holds, and nothing is known of who did.
function Lock.clear_holds(lock)
  -- The bound is infinity, packed.
  lock.count, lock.soonest, lock.buckets, lock.bounds, lock.holds = 0, math.huge, 1, '\0\0\0\0\0\0\240\127', { [0] = '' }
  lock.writer, lock.farthest, lock.longest = nil, 0, 0
end

-- Reads a lock: what lies under it (false: nothing; `seen`: what a script has read there already) and its record. `longest` is the
-- longest lease that was asked for by who holds (of a mutex in ms, else in µs): an end further away was set by a clock that has stepped
-- back since.
function Lock.read(key, record, me, seen)
  local holder, marked = Lock.under(key, seen)
  local fields = redis.call('HMGET', record, 'c', 'q', 'm', 'b', 'k', 'H', 'H0', 'x' .. me)
  local counter, sum = fields[1], fields[6]
  local lock = setmetatable({
    key = key, record = record, holder = holder, marked = marked, last = 0, kept = 0, noted = '', queue = fields[2] or '',
    open = tonumber(fields[3]), due = tonumber(fields[4]), kind = tonumber(fields[5]) or 1, tombstone = tonumber(fields[8]),
    -- The changes: pairs to set, fields to remove, buckets and owners; then what is published once all that is written.
    set = {}, gone = {}, fresh = {}, touched = {}, notices = {},
  }, Lock)
  lock:clear_holds()
  if counter then
    local last, kept, layout = struct.unpack('<ddB', counter)
    if layout ~= 1 then error('fencelock: another layout') end
    lock.last, lock.kept = last, math.abs(kept)
    if #counter > 17 then
      lock.noted, lock.owner = string.sub(counter, 18), string.sub(counter, 18, 49)
      lock.first, lock.since, lock.longest = struct.unpack('<ddd', counter, 50)
    end
  end
  if sum then
    lock.farthest, lock.longest, lock.count, lock.soonest, lock.buckets = struct.unpack('<ddddd', sum)
    lock.bounds, lock.holds[0] = string.sub(sum, 41, 40 + 8 * lock.buckets), fields[7] or ''
    if #sum > 40 + 8 * lock.buckets then lock.writer = string.sub(sum, -32) end
  end
  return lock
end

function Lock.put(lock, field, content)
  local set = lock.set
  local count = #set
  set[count + 1], set[count + 2] = field, content
end

-- Should the server refuse a write, nobody was told what is not so.
function Lock.announce_later(lock, channel, message)
  local notices = lock.notices
  notices[#notices + 1] = { channel, message }
end

-- The record must not be forgotten before this moment. It is kept for twice as long, so that most steps need no EXPIRE.
function Lock.keep(lock, moment)
  if moment > lock.kept then
    lock.kept = 2 * moment - now
    lock.extended, lock.turned = true, true
  end
end

function Lock.forget(lock)
  if lock.gone[1] then
    redis.call('HDEL', lock.record, unpack(lock.gone))
    lock.gone = {}
  end
end

function Lock.erase(lock, field)
  lock.gone[#lock.gone + 1] = field
  -- `unpack` carries few values: Lua's stack has 8,000 places.
  if #lock.gone == 1000 then lock:forget() end
end

-- Several may hold a lock that is no mutex: owner id, end and number of permits of each, 42 bytes, in buckets by the owner id, so that a step reads and
-- writes few of thousands.
function Lock.holds_in(lock, bucket)
  local holds = lock.holds[bucket]
  if not holds then
    holds = redis.call('HGET', lock.record, 'H' .. bucket) or ''
    lock.holds[bucket] = holds
  end
  return holds
end

-- All who hold, their ends and their permits; of a moment, all in buckets in which one has ended by then.
function Lock.owners(lock, moment)
  local all, ends, permits = {}, {}, {}
  for bucket = 0, lock.count > 0 and lock.buckets - 1 or -1 do
    if not moment or struct.unpack('<d', lock.bounds, 8 * bucket + 1) <= moment then
      local holds = lock:holds_in(bucket)
      for at = 1, #holds, 42 do
        local place = #all + 1
        all[place], ends[place], permits[place] = struct.unpack('<c32dH', holds, at)
      end
    end
  end
  return all, ends, permits
end

-- The value under a lock of ours that is no mutex.
function Lock.mark_of(which)
  return which == 2 and 'fencelock:read-write' or 'fencelock:semaphore'
end

-- Takes the ticket at this place out of the queue.
function Lock.drop(lock, place, owner)
  lock.queue = string.sub(lock.queue, 1, place - 1) .. string.sub(lock.queue, place + 33)
  lock.moved, lock.turned = true, true
  lock:erase('w' .. owner)
end

function Lock.ticket_of(lock, owner)
  local packed = redis.call('HGET', lock.record, 'w' .. owner)
  if not packed then return nil end
  local refreshed, passed, ttl, block, since, mode, limit, permits, channel, at = struct.unpack('<dBdddBdHs', packed)
  return {
    owner = owner, refreshed = refreshed, passed = passed, ttl = ttl, block = block, since = since, mode = mode,
    limit = limit, permits = permits, channel = channel, info = string.sub(packed, at),
  }
end

-- The first live ticket; dead ones before it are dropped. One lives 5 s without a Refresh.
function Lock.head(lock)
  while lock.queue ~= '' do
    local owner = string.sub(lock.queue, 1, 32)
    local ticket = lock:ticket_of(owner)
    if ticket and now < ticket.refreshed + 5000000 then return ticket end
    lock:drop(1, owner)
  end
end

function Lock.next_token(lock)
  local token = math.max(lock.last + 1, now)
  -- Beyond it numbers are no longer told apart. Nothing was written yet.
  if token > 9007199254740991 then error('fencelock: no token is left') end
  return token
end

-- How many tokens a grant draws: no further ahead of the clock than `lead`, so that the counter of a server that loses it is soon passed
-- by the clock.
function Lock.drawn(first, block, lead)
  return math.max(1, math.min(block, now + lead - first + 1, 9007199254740991 - first + 1))
end

-- `fair: false`: the lock is open for a second, and the head is passed over twice at most.
function Lock.is_open(lock, ticket)
  return lock.open and ticket.passed < 2 and now < lock.open + 1000000
end

function Lock.close(lock)
  if lock.open then
    lock.open = nil
    lock:erase('m')
  end
end

-- The kind that a lock is in use as, if this script serves another one. A use that has ended is cleared away.
function Lock.enter(lock)
  if lock.kind == lock.serves then
    if lock.expire then lock:expire() end
    return nil
  end
  local used = lock.holder and lock.holder == lock.owner
  if lock.kind ~= 1 then
    local marked = lock.holder == Lock.mark_of(lock.kind)
    used = false
    local all_ends = {}
    if marked then all_ends = select(2, lock:owners()) end
    for _, ends in ipairs(all_ends) do
      used = used or ends > now
    end
    if marked and not used and (not lock.only_ours or lock:only_ours()) then lock.holder, lock.released = false, true end
  end
  if used or lock:head() then
    lock.other = true
    return lock.kind
  end
  for _, owner in ipairs(lock:owners()) do
    lock:erase('h' .. owner)
  end
  if lock.kind ~= 1 then
    lock:erase('k')
    lock:erase('H')
    for bucket = 0, lock.buckets - 1 do
      lock:erase('H' .. bucket)
    end
  end
  lock:close()
  lock:clear_holds()
  lock.kind, lock.owner, lock.noted = lock.serves, nil, ''
  -- A record that is not there is not made for that.
  lock.turned = lock.kept > 0
end

-- How many heard it. Who must not publish cannot tell, so it counts as heard.
function Lock.tell(channel, message)
  local heard = redis.pcall('PUBLISH', channel, message)
  return type(heard) == 'number' and heard or 1
end

-- Writes what has changed: the record, then the lock. Where the record may not be written, no lock is left behind. May be called again,
-- for what has changed since.
function Lock.write_changes(lock)
  -- Tombstones that have ended are dropped when the record's end is pushed, which happens once in ten ttls.
  if lock.extended and lock.due and lock.due <= now then
    local all = redis.call('HGETALL', lock.record)
    -- The one of this very step is not written yet.
    lock.due = lock.laid
    for at = 1, #all, 2 do
      if string.sub(all[at], 1, 1) == 'x' then
        local ends = all[at + 1] + 0
        if ends <= now then
          lock:erase(all[at])
        elseif not lock.due or ends < lock.due then
          lock.due = ends
        end
      end
    end
    if lock.due then lock:put('b', lock.due) else lock:erase('b') end
  end
  if lock.moved then lock:put('q', lock.queue) end
  if lock.opened and lock.open then lock:put('m', lock.open) end
  if lock.note and not lock.other then lock:note() end
  if lock.turned then
    local long = lock.queue ~= '' or lock.due or lock.other or lock.count > 0
    lock:put('c', struct.pack('<ddB', lock.last, long and -lock.kept or lock.kept, 1) .. lock.noted)
  end
  lock:forget()
  local set = lock.set
  for from = 1, #set, 1000 do
    redis.call('HSET', lock.record, unpack(set, from, math.min(from + 999, #set)))
  end
  if lock.extended then redis.call('PEXPIRE', lock.record, math.ceil((lock.kept - now) / 1000)) end
  if not lock.other then lock:commit() end
  lock.set, lock.moved, lock.extended, lock.turned, lock.opened = {}, false, false, false, false
end

-- The end of a script: writes what has changed, then publishes what is so by now.
function Lock.store(lock)
  lock:write_changes()
  for _, notice in ipairs(lock.notices) do
    Lock.tell(notice[1], notice[2])
  end
end

-- Drops the dead from the head of the queue; as long as the next may hold beside those who do, hands over and tells: for 5 s at most.
-- No script serves more than 256, so that none keeps the server for long: the next one is asked to come for itself.
function Lock.settle(lock, me)
  local ticket, served = lock:head(), 0
  while ticket and lock:admits(ticket.mode, ticket.limit, ticket.permits) do
    if lock:is_open(ticket) or math.max(lock.last + 1, now) > 9007199254740991 then return end
    if served == 256 then return lock:announce_later(ticket.channel, 'o' .. ticket.owner) end
    lock:drop(1, ticket.owner)
    local ttl, last = math.min(ticket.ttl, 5000), lock.last
    local first = lock:next_token()
    local block = Lock.drawn(first, ticket.block, 10000)
    local message = string.format('g%s %.0f %d %d', ticket.owner, first, ttl, block)
    lock:add_holder(ticket.owner, ticket.mode, ttl, block, ticket.info, first, ticket.ttl, ticket.permits)
    local heard = true
    if ticket.owner == me or now < ticket.refreshed + 2000000 then
      lock:announce_later(ticket.channel, message)
    else
      -- A waiter that was silent for 2 s may be gone: its grant is written, then published, and taken back if nobody hears it.
      lock:write_changes()
      heard = Lock.tell(ticket.channel, message) > 0
    end
    if heard then
      if lock.serves == 1 then return end
      served = served + 1
    else
      -- Nobody has its token.
      lock:remove_holder(ticket.owner)
      lock.last, lock.turned = last, true
    end
    ticket = lock:head()
  end
  if not ticket then lock:close() end
end

-- Ends a hold of a lock in hand; answers what became of it. `open`: the next waiter does not get it outright.
function Lock.free(lock, owner, open)
  if lock:enter() then return 5 end -- gone
  local mine = lock:remove_holder(owner)
  local ticket = mine and open and lock:head()
  if ticket and ticket.passed < 2 and lock:admits(ticket.mode, ticket.limit, ticket.permits) then
    lock.open, lock.opened = now, true
    lock:announce_later(ticket.channel, 'o' .. ticket.owner)
  end
  lock:settle(owner)
  return mine and 4 or 5
end
