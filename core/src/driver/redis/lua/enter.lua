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
    local all_ends = {}
    if marked then all_ends = select(2, owners(lock)) end
    for _, ends in ipairs(all_ends) do
      used = used or ends > now
    end
    if marked and not used ONLY_OURS then lock.holder, lock.released = false, true end
  end
  if used or head(lock) then
    lock.other = true
    return lock.kind
  end
  if lock.count > 0 then
    for _, owner in ipairs(owners(lock)) do
      erase(lock, 'h' .. owner)
    end
  end
  if lock.kind ~= KIND_MUTEX then
    erase(lock, 'k')
    erase(lock, 'H')
    for bucket = 0, lock.buckets - 1 do
      erase(lock, 'H' .. bucket)
    end
  elseif lock.noted then
    erase(lock, 'h')
  end
  close(lock)
  clear_holds(lock)
  lock.kind, lock.owner = THIS_KIND, nil
  -- A record that is not there is not made for that.
  lock.turned = lock.kept > 0
end
