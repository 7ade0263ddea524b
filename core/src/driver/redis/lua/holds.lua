-- Who holds a lock that several may hold: owner id, end and number of permits of each, in buckets by the owner id, so that a step reads and writes few of
-- thousands. A bucket is a field of the record, `H0` and so on; `H` sums up: the farthest and the longest lease, how many permits are held, the
-- soonest end, how many buckets, the soonest end in each of them, then the writer, if there is one.
local function ends_at(holds, at)
  return (struct.unpack('<d', holds, at + 32))
end

local function permits_at(holds, at)
  return (struct.unpack('<H', holds, at + 40))
end

local function bound_of(lock, bucket)
  return (struct.unpack('<d', lock.bounds, 8 * bucket + 1))
end

local function holds_in(lock, bucket)
  local holds = lock.holds[bucket]
  if not holds then
    holds = call('HGET', lock.record, 'H' .. bucket) or ''
    lock.holds[bucket] = holds
  end
  return holds
end

-- Owner ids are random, so any part of them spreads.
local function bucket_of(lock, owner)
  return lock.buckets > 1 and tonumber(sub(owner, 1, 8), 16) % lock.buckets or 0
end

-- Where an owner's hold is, or would be: the bucket, and the place in it.
local function find(lock, owner)
  local bucket, at = bucket_of(lock, owner), 0
  repeat
    at = string.find(holds_in(lock, bucket), owner, at + 1, true)
  until not at or at % HOLD_SIZE == 1
  return bucket, at
end

-- The end of an owner's hold, if it has one.
local function ends_of(lock, owner)
  if lock.count == 0 then return nil end
  local bucket, at = find(lock, owner)
  return at and ends_at(lock.holds[bucket], at)
end

-- All who hold, their ends and their permits; of a moment, all in buckets in which one has ended by then.
local function owners(lock, moment)
  local all, ends, permits = {}, {}, {}
  for bucket = 0, lock.count > 0 and lock.buckets - 1 or -1 do
    if not moment or bound_of(lock, bucket) <= moment then
      local holds = holds_in(lock, bucket)
      for at = 1, #holds, HOLD_SIZE do
        local place = #all + 1
        all[place], ends[place], permits[place] = sub(holds, at, at + 31), ends_at(holds, at), permits_at(holds, at)
      end
    end
  end
  return all, ends, permits
end

-- Nobody holds, and nothing is known of who did.
local function clear_holds(lock)
  lock.count, lock.soonest, lock.buckets, lock.bounds, lock.holds = 0, math.huge, 1, NO_BOUND, { [0] = '' }
  lock.writer, lock.farthest, lock.longest = nil, 0, 0
end
