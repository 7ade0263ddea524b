-- A mutex has one holder: what lies under the lock is its owner id. Behind the counter the record says of it owner id, first token, since
-- when, the lease asked for, info.
function Lock.admits(lock)
  return not lock.holder
end

-- Whether somebody holds it who is not ours.
function Lock.foreign(lock)
  return lock.holder and lock.holder ~= lock.owner
end

function Lock.add_holder(lock, owner, _, ttl, block, info, first, asked)
  lock.last, lock.longest = first + block - 1, asked
  lock.holder, lock.owner, lock.first, lock.since, lock.granted, lock.turned = owner, owner, first, now, ttl, true
  lock.noted = struct.pack('<c32ddd', owner, first, now, asked) .. info
  lock:close()
  lock:keep(lock.last + ttl * 10000)
end

-- Ends a hold; whether there was one.
function Lock.remove_holder(lock, owner)
  if lock.holder ~= owner then return false end
  lock.holder, lock.granted, lock.released = false, false, true
  return true
end

-- Milliseconds left of the hold, granted here or before; -1 if it has no end.
function Lock.left(lock)
  if lock.granted or not lock.holder then return lock.granted or 0 end
  local rest = redis.call('PTTL', lock.key)
  if lock:foreign() or rest <= lock.longest then return rest end
  redis.call('PEXPIRE', lock.key, lock.longest)
  return lock.longest
end

-- First token and rest of an owner's hold, if it has one.
function Lock.held(lock, owner)
  if lock.holder == owner and lock.owner == owner then return lock.first, lock:left() end
end

-- Pushes the end of a hold, never nearer. A hold whose end somebody took away gets one again.
function Lock.prolong(lock, owner, ttl)
  if lock.holder ~= owner or lock.owner ~= owner then return nil end
  -- No end is further away than the longest lease that was asked for.
  local rest = (lock.granted or ttl < lock.longest) and lock:left() or 0
  if lock.granted then
    lock.granted = math.max(rest, ttl)
  elseif rest < ttl then
    redis.call('PEXPIRE', lock.key, ttl)
  end
  if ttl > lock.longest then
    lock.longest, lock.turned = ttl, true
    lock.noted = string.sub(lock.noted, 1, 48) .. struct.pack('<d', ttl) .. string.sub(lock.noted, 57)
  end
  rest = math.max(rest, ttl)
  lock:keep(now + (rest + ttl * 10) * 1000)
  return lock.first, rest
end
