-- Whatever kind of lock lies under a key. A semaphore of which nobody has a permit is held by nobody.
local under_hash = under
local function under(key)
  if call('TYPE', key).ok ~= 'string' then return under_hash(key) end
  local since = '(' .. string.format('%.0f', math.floor(now / 1000))
  local live = call('ZRANGEBYSCORE', beside(key, 'timeout'), since, '+inf')
  return live[1] and MARK_SEMAPHORE
end
