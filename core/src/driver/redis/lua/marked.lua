-- Whether somebody holds it who is not ours.
local function foreign(lock)
  return lock.holder and lock.holder ~= THIS_MARK
end

local function commit(lock)
  if lock.count > 0 then
    local rest = lock.latest and math.ceil((lock.latest - now) / 1000)
    if lock.holder ~= THIS_MARK then
      call('SET', lock.key, THIS_MARK, 'PX', rest)
      lock.holder = THIS_MARK
    elseif rest and (lock.nearer or call('PTTL', lock.key) < rest) then
      call('PEXPIRE', lock.key, rest)
    end
  elseif lock.released or lock.changed and lock.holder == THIS_MARK then
    call('DEL', lock.key)
    WAKE_NEIGHBOURS
  end
end
