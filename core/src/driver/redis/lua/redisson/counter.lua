-- Redisson's expirable permits: under the lock how many are free, beside it who has the others and until when, in ms.
local under_hash = under
local function under(key)
  local value = redis.pcall('GET', key)
  -- Perhaps a lock of another kind.
  if type(value) == 'table' then return under_hash(key) end
  -- What is no number is no semaphore; this refuses it as the server would.
  if value and not tonumber(value) then call('HGETALL', key) end
  local all, ends = call('ZRANGE', beside(key, 'timeout'), 0, -1, 'WITHSCORES'), {}
  for at = 1, #all, 2 do
    ends[all[at]] = all[at + 1] + 0
  end
  beneath[key] = { free = tonumber(value), ends = ends }
  return value and MARK_SEMAPHORE
end
