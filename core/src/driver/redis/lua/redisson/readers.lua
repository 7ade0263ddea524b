-- Redisson's read-write lock: `mode`, a field `<holder>` for each reader, `<holder>:write` for the writer. Of every
-- reader there is a key besides, which lives as long as its lease; the lock itself lives as long as the longest.

local function lease_of(key, field, number)
  return beside(key, field .. ':rwlock_timeout:' .. number)
end

-- Whether a field is a hold of ours, or was until now. Threads 0 that the record does not know are somebody else's.
local function is_ours(lock, field)
  local owner = owner_of(field)
  return owner and (lock.touched[owner] or ends_of(lock, owner))
end

-- For how long one of theirs holds it: a writer as long as the lock lives, a reader as long as a key of its own does. The
-- field of a reader that died stays.
local function left_of(lock, field, count)
  if beneath[lock.key].mode ~= 'read' then return call('PTTL', lock.key) end
  local rest = 0
  for number = 1, tonumber(count) or 0 do
    local left = redis.pcall('PTTL', lease_of(lock.key, field, number))
    -- In a slot on its way elsewhere what is not here may be there: it may last as long as the lock.
    rest = math.max(rest, type(left) == 'number' and left or call('PTTL', lock.key))
  end
  return rest
end
