-- Changes to who holds.
local function rebound(lock, bucket, bound)
  if lock.buckets == 1 then
    lock.bounds, lock.soonest = struct.pack('<d', bound), bound
    return
  end
  local before = bound_of(lock, bucket)
  lock.bounds = sub(lock.bounds, 1, 8 * bucket) .. struct.pack('<d', bound) .. sub(lock.bounds, 8 * bucket + 9)
  if bound < lock.soonest then
    lock.soonest = bound
  elseif before == lock.soonest and bound > before then
    lock.soonest = math.huge
    for other = 0, lock.buckets - 1 do
      lock.soonest = math.min(lock.soonest, bound_of(lock, other))
    end
  end
end

-- Notes until when an owner holds; without an end, that it does no longer. Of a new one also how many permits.
local function note_end(lock, owner, ends, permits)
  local bucket, at = find(lock, owner)
  local holds = lock.holds[bucket]
  permits = at and permits_at(holds, at) or permits
  local one = ends and owner .. struct.pack('<dH', ends, permits) or ''
  local bound, ended = bound_of(lock, bucket), at and ends_at(holds, at)
  if at then
    holds = sub(holds, 1, at - 1) .. one .. sub(holds, at + HOLD_SIZE)
  else
    holds = holds .. one
    lock.count = lock.count + permits
  end
  if not ends then lock.count = lock.count - permits end
  lock.holds[bucket], lock.fresh[bucket], lock.changed = holds, true, true
  if holds == one then
    -- Nobody else holds in this bucket.
    rebound(lock, bucket, ends or math.huge)
  elseif ended == bound then
    bound = math.huge
    for other = 1, #holds, HOLD_SIZE do
      bound = math.min(bound, ends_at(holds, other))
    end
    rebound(lock, bucket, bound)
  elseif ends and ends < bound then
    rebound(lock, bucket, ends)
  end
end

-- Twice as many buckets, for one more hold.
local function split(lock)
  local all, ends, permits = owners(lock)
  local parts, bounds = {}, {}
  lock.buckets = 2 * lock.buckets
  for bucket = 0, lock.buckets - 1 do
    parts[bucket], bounds[bucket] = {}, math.huge
  end
  for at, owner in ipairs(all) do
    local bucket = bucket_of(lock, owner)
    local part = parts[bucket]
    part[#part + 1] = owner .. struct.pack('<dH', ends[at], permits[at])
    bounds[bucket] = math.min(bounds[bucket], ends[at])
  end
  local packed = {}
  for bucket = 0, lock.buckets - 1 do
    lock.holds[bucket], lock.fresh[bucket] = table.concat(parts[bucket]), true
    packed[bucket + 1] = struct.pack('<d', bounds[bucket])
  end
  lock.bounds = table.concat(packed)
end

-- Notes in the record who holds.
local function note(lock)
  if lock.changed then
    for bucket in pairs(lock.fresh) do
      local holds = lock.holds[bucket]
      if holds == '' then erase(lock, 'H' .. bucket) else put(lock, 'H' .. bucket, holds) end
    end
    lock.fresh = {}
    if lock.count == 0 then
      erase(lock, 'H')
      clear_holds(lock)
    else
      put(lock, 'H', struct.pack('<ddddd', lock.farthest, lock.longest, lock.count, lock.soonest, lock.buckets) .. lock.bounds ..
        (lock.writer or ''))
    end
  end
  if lock.changed or lock.moved then
    lock.turned = true
    if lock.count == 0 and lock.queue == '' then erase(lock, 'k') else put(lock, 'k', THIS_KIND) end
  end
end
