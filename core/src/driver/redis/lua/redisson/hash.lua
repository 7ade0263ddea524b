-- A lock is a hash: a field for each holder, and `mode` if it is a read-write lock.

-- What lies there is no hash. Who takes a semaphore of ours for another lock is told of what kind it is.
local function no_hash(key)
  for at = 1, #KEYS, 2 do
    local ours = KEYS[at] == key and tonumber(call('HGET', KEYS[at + 1], 'k') or '') == KIND_SEMAPHORE
    if ours and type(redis.pcall('GET', key)) == 'string' then
      beneath[key] = { permits = '1' }
      return MARK_SEMAPHORE
    end
  end
  call('HGETALL', key)
end

local function under(key)
  local all = redis.pcall('HGETALL', key)
  if all.err then return no_hash(key) end
  if not all[1] then return false end
  local fields, ours = {}, nil
  for at = 1, #all, 2 do
    fields[all[at]] = all[at + 1]
    ours = ours or owner_of(all[at])
  end
  beneath[key] = fields
  if fields.mode then return ours and MARK_READ_WRITE or 'foreign' end
  return not all[3] and ours or 'foreign'
end

local function others(key)
  for field in pairs(beneath[key] or {}) do
    if field ~= 'mode' and not owner_of(field) then return true end
  end
  return false
end

-- Asked of a lock whose use by us has come to its end. Permits that are all free stay where they are, and are no lock.
local function only_ours(key)
  if beneath[key] and beneath[key].permits then call('HGETALL', key) end
  return not others(key)
end
