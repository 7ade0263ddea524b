-- A lock that several may hold. The record sums up in `H`: the farthest and the longest lease, how many permits are held, the soonest end, how many
-- buckets, the soonest end in each of them, then the writer, if there is one. The buckets are `H0` and so on; `h<owner>` says of each
-- holder its token, since when, and info. The kind is the last argument of every script.
Lock.serves = tonumber(ARGV[#ARGV])

-- Owner ids are random, so any part of them spreads.
function Lock.bucket_of(lock, owner)
  return lock.buckets > 1 and tonumber(string.sub(owner, 1, 8), 16) % lock.buckets or 0
end

-- Where an owner's hold is, or would be: the bucket, and the place in it.
function Lock.find(lock, owner)
  local bucket, at = lock:bucket_of(owner), 0
  repeat
    at = string.find(lock:holds_in(bucket), owner, at + 1, true)
  until not at or at % 42 == 1
  return bucket, at
end

-- The end of an owner's hold, if it has one.
function Lock.ends_of(lock, owner)
  if lock.count == 0 then return nil end
  local bucket, at = lock:find(owner)
  return at and (struct.unpack('<d', lock.holds[bucket], at + 32))
end

function Lock.rebound(lock, bucket, bound)
  if lock.buckets == 1 then
    lock.bounds, lock.soonest = struct.pack('<d', bound), bound
    return
  end
  local before = struct.unpack('<d', lock.bounds, 8 * bucket + 1)
  lock.bounds = string.sub(lock.bounds, 1, 8 * bucket) .. struct.pack('<d', bound) .. string.sub(lock.bounds, 8 * bucket + 9)
  if bound < lock.soonest then
    lock.soonest = bound
  elseif before == lock.soonest and bound > before then
    lock.soonest = math.huge
    for other = 0, lock.buckets - 1 do
      lock.soonest = math.min(lock.soonest, (struct.unpack('<d', lock.bounds, 8 * other + 1)))
    end
  end
end

-- Notes until when an owner holds; without an end, that it does no longer. Of a new one also how many permits.
function Lock.note_end(lock, owner, ends, permits)
  local bucket, at = lock:find(owner)
  local holds = lock.holds[bucket]
  if at then permits = struct.unpack('<H', holds, at + 40) end
  local one = ends and owner .. struct.pack('<dH', ends, permits) or ''
  local bound, ended = (struct.unpack('<d', lock.bounds, 8 * bucket + 1)), at and (struct.unpack('<d', holds, at + 32))
  if at then
    holds = string.sub(holds, 1, at - 1) .. one .. string.sub(holds, at + 42)
  else
    holds = holds .. one
    lock.count = lock.count + permits
  end
  if not ends then lock.count = lock.count - permits end
  lock.holds[bucket], lock.fresh[bucket], lock.changed = holds, true, true
  if holds == one then
    -- Nobody else holds in this bucket.
    lock:rebound(bucket, ends or math.huge)
  elseif ended == bound then
    bound = math.huge
    for other = 1, #holds, 42 do
      bound = math.min(bound, (struct.unpack('<d', holds, other + 32)))
    end
    lock:rebound(bucket, bound)
  elseif ends and ends < bound then
    lock:rebound(bucket, ends)
  end
end

-- Twice as many buckets, for one more hold.
function Lock.split(lock)
  local all, ends, permits = lock:owners()
  local parts, bounds = {}, {}
  lock.buckets = 2 * lock.buckets
  for bucket = 0, lock.buckets - 1 do
    parts[bucket], bounds[bucket] = {}, math.huge
  end
  for at, owner in ipairs(all) do
    local bucket = lock:bucket_of(owner)
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
function Lock.note(lock)
  if lock.changed then
    for bucket in pairs(lock.fresh) do
      local holds = lock.holds[bucket]
      if holds == '' then lock:erase('H' .. bucket) else lock:put('H' .. bucket, holds) end
    end
    lock.fresh = {}
    if lock.count == 0 then
      lock:erase('H')
      lock:clear_holds()
    else
      lock:put('H', struct.pack('<ddddd', lock.farthest, lock.longest, lock.count, lock.soonest, lock.buckets) .. lock.bounds ..
        (lock.writer or ''))
    end
  end
  if lock.changed or lock.moved then
    lock.turned = true
    if lock.count == 0 and lock.queue == '' then lock:erase('k') else lock:put('k', lock.serves) end
  end
end

function Lock.write_hold(lock, owner, ends, permits)
  lock:note_end(owner, ends, permits)
  if not lock.latest or ends > lock.latest then lock.latest = ends end
  if ends > lock.farthest then lock.farthest = ends end
  lock.touched[owner] = true
end

function Lock.remove_hold(lock, owner)
  lock:erase('h' .. owner)
  lock.touched[owner] = true
  lock:note_end(owner)
  if lock.writer == owner then lock.writer = nil end
end

-- Brings ends nearer that are further away than the longest lease asked for.
function Lock.cut(lock)
  local most = now + lock.longest
  if lock.count == 0 or lock.farthest <= most then return end
  local all, ends = lock:owners()
  for at, owner in ipairs(all) do
    if ends[at] > most then lock:write_hold(owner, most) end
  end
  lock.farthest, lock.latest, lock.changed, lock.nearer = most, most, true, true
end

-- Removes what has ended, and what vanished from under the lock; a mark has taken all holds with it.
function Lock.expire(lock)
  lock:cut()
  local void = lock:some_vanished()
  if lock.count == 0 or not void and lock.soonest > now then return end
  local all, ends = lock:owners(not void and now)
  for at, owner in ipairs(all) do
    if lock:vanished(owner) or ends[at] <= now then
      lock:remove_hold(owner)
      lock:close()
    end
  end
end

-- Whether somebody holds it who is not ours. This and the next two are of our own layout; Redisson's are in its files.
function Lock.foreign(lock)
  return lock.holder and lock.holder ~= Lock.mark_of(lock.serves)
end

function Lock.keeps_out(lock)
  return lock:foreign()
end

-- Whether a hold of ours was taken away: a mark has taken all of them with it.
function Lock.vanished(lock)
  return lock.holder ~= Lock.mark_of(lock.serves)
end

function Lock.some_vanished(lock)
  return lock:vanished()
end

function Lock.admits(lock, mode, limit, permits)
  if lock:keeps_out(mode, limit) then return false end
  if mode == 4 then return lock.count + permits <= limit end
  if lock.count == 0 then return true end
  return mode == 2 and not lock.writer
end

function Lock.token_of(lock, owner)
  local drawn = lock.tokens and lock.tokens[owner]
  return drawn or (struct.unpack('<d', redis.call('HGET', lock.record, 'h' .. owner)))
end

function Lock.add_holder(lock, owner, mode, ttl, block, info, first, asked, permits)
  if lock.count == 0 then lock.farthest, lock.longest = 0, 0 end
  lock.longest = math.max(lock.longest, asked * 1000)
  lock.last, lock.turned = first + block - 1, true
  -- 64 holds are a full bucket, however many permits they are.
  if #lock:holds_in(lock:bucket_of(owner)) >= 42 * 64 then lock:split() end
  lock:write_hold(owner, now + ttl * 1000, permits)
  if mode == 3 then lock.writer = owner end
  lock.tokens = lock.tokens or {}
  lock.tokens[owner] = first
  lock:put('h' .. owner, struct.pack('<dd', first, now) .. info)
  lock:close()
  lock:keep(lock.last + ttl * 10000)
end

function Lock.remove_holder(lock, owner)
  local held = lock:ends_of(owner)
  if held then lock:remove_hold(owner) end
  return held
end

function Lock.rest_of(ends)
  return math.floor((ends - now) / 1000)
end

-- Milliseconds left of the hold that ends first; -1 if it has no end.
function Lock.left(lock)
  if lock:foreign() then return redis.call('PTTL', lock.key) end
  return lock.count > 0 and Lock.rest_of(lock.soonest) or 0
end

function Lock.held(lock, owner)
  local ends = lock:ends_of(owner)
  if ends then return lock:token_of(owner), Lock.rest_of(ends) end
end

function Lock.prolong(lock, owner, ttl)
  local before = lock:ends_of(owner)
  if not before then return nil end
  if ttl * 1000 > lock.longest then lock.longest, lock.changed = ttl * 1000, true end
  local ends = math.max(before, now + ttl * 1000)
  if ends > before then lock:write_hold(owner, ends) end
  lock:keep(ends + ttl * 10000)
  return lock:token_of(owner), Lock.rest_of(ends)
end
