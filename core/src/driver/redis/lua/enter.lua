-- What a lock is in use as, if that is not what this script serves. A use that has come to its end is cleared away.
local function enter(lock)
  if lock.kind == THIS_KIND then
    EXPIRE
    return nil
  end
  local used = lock.holder and lock.holder == lock.owner
  if lock.kind ~= KIND_MUTEX then
    local marked = lock.holder == mark_of(lock.kind)
    used = false
    for at = 1, #lock.holds, HOLD_SIZE do
      used = used or marked and struct.unpack('<d', lock.holds, at + 33) > now
    end
    if marked and not used ONLY_OURS then lock.holder, lock.released = false, true end
  end
  if used or head(lock) then
    lock.other = true
    return lock.kind
  end
  for at = 1, #lock.holds, HOLD_SIZE do
    erase(lock, 'h' .. sub(lock.holds, at, at + 31))
  end
  if lock.kind ~= KIND_MUTEX then
    erase(lock, 'k')
    erase(lock, 'H')
  else
    erase(lock, 'h')
  end
  close(lock)
  lock.kind, lock.holds, lock.soonest, lock.owner = THIS_KIND, '', nil, nil
  -- A record that is not there is not made for that.
  lock.turned = lock.kept > 0
end
