-- How Redisson writes locks. Each key is read once; what lay under it then is kept here.
local beneath = {}

local function named(prefix, key)
  return prefix .. (string.find(key, '{', 1, true) and ':' .. key or ':{' .. key .. '}')
end

local function beside(key, suffix)
  return (string.find(key, '{', 1, true) and key or '{' .. key .. '}') .. ':' .. suffix
end

-- A holder is a client's UUID and a thread. Ours are threads 0, of which Java has none.
local function field_of(owner)
  return string.sub(owner, 1, 8) .. '-' .. string.sub(owner, 9, 12) .. '-' .. string.sub(owner, 13, 16) .. '-' .. string.sub(owner, 17, 20) ..
    '-' .. string.sub(owner, 21) .. ':0'
end

-- The owner id in a field that is ours.
local function owner_of(field)
  local a, b, c, d, e, rest = string.match(field, '^(%x+)%-(%x+)%-(%x+)%-(%x+)%-(%x+):0(.*)$')
  return (rest == '' or rest == ':write') and a .. b .. c .. d .. e
end

-- Clients of a cluster may listen by the other command. Who may not publish changes nothing else.
local function announce(channel, message)
  if redis.pcall('PUBLISH', channel, message) == 0 then redis.pcall('SPUBLISH', channel, message) end
end

-- A lock is a hash: a field for each holder, and `mode` if it is a read-write lock.

function Lock.under(key)
  local all = redis.call('HGETALL', key)
  if not all[1] then return false end
  local fields, ours = {}, nil
  for at = 1, #all, 2 do
    fields[all[at]] = all[at + 1]
    ours = ours or owner_of(all[at])
  end
  beneath[key] = fields
  if fields.mode then return ours and Lock.mark_of(2) or 'foreign' end
  return not all[3] and ours or 'foreign'
end

local function others(key)
  for field in pairs(beneath[key] or {}) do
    if field ~= 'mode' and not owner_of(field) then return true end
  end
  return false
end

-- Asked of a lock whose use by us has come to its end.
function Lock.only_ours(lock)
  return not others(lock.key)
end

-- Writes a mutex.
function Lock.commit(lock)
  if lock.granted then
    if beneath[lock.key] or lock.released then redis.call('DEL', lock.key) end
    redis.call('HSET', lock.key, field_of(lock.holder), 1)
    redis.call('PEXPIRE', lock.key, lock.granted)
  elseif lock.released then
    redis.call('DEL', lock.key)
    -- Waiters of a plain lock all listen on one channel, those of a fair lock each on its own; the first in their line is told.
    local channel = named('redisson_lock__channel', lock.key)
    announce(channel, '0')
    local first = redis.pcall('LINDEX', named('redisson_lock_queue', lock.key), 0)
    if type(first) == 'string' then announce(channel .. ':' .. first, '0') end
  end
end
