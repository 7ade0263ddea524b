-- Our own layout and that of plain dialects: one string with an expiry lies under the lock. Of a mutex it is the owner id, with a `+` behind
-- it once somebody waits, so that a Free without one needs no look at the record; of another lock it is a mark, which keeps others out
-- until the last hold ends at the latest.
function Lock.under(key, seen)
  if seen == nil then seen = redis.call('GET', key) end
  if seen and #seen == 33 and string.sub(seen, 33) == '+' then return string.sub(seen, 1, 32), true end
  return seen, false
end

-- Writes the lock itself.
function Lock.commit(lock)
  local released = lock.released
  if lock.serves == 1 then
    local waits = lock.queue ~= ''
    if lock.granted then
      redis.call('SET', lock.key, lock.holder .. (waits and '+' or ''), 'PX', lock.granted)
    elseif waits and not lock.marked and lock.holder and lock.holder == lock.owner then
      redis.call('SET', lock.key, lock.holder .. '+', 'KEEPTTL')
    end
    lock.marked = waits
    released = released and not lock.granted
  elseif lock.count > 0 then
    local rest, mark = lock.latest and math.ceil((lock.latest - now) / 1000), Lock.mark_of(lock.serves)
    if lock.holder ~= mark then
      redis.call('SET', lock.key, mark, 'PX', rest)
      lock.holder = mark
    elseif rest and (lock.nearer or redis.call('PTTL', lock.key) < rest) then
      redis.call('PEXPIRE', lock.key, rest)
    end
    released = false
  else
    released = released or lock.changed and lock.holder == Lock.mark_of(lock.serves)
  end
  if released then
    redis.call('DEL', lock.key)
    -- Those who wait by another library: python-redis-lock's list, the channel of Spring's registry. A server that does not allow it, or
    -- keeps the list elsewhere, changes nothing else.
    if (lock.wakes_list or '') ~= '' then
      redis.pcall('DEL', lock.wakes_list)
      redis.pcall('LPUSH', lock.wakes_list, 1)
      redis.pcall('PEXPIRE', lock.wakes_list, 1000)
    end
    if (lock.wakes_channel or '') ~= '' then redis.pcall('PUBLISH', lock.wakes_channel, lock.key) end
  end
end
