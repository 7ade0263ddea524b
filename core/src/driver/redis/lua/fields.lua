-- What a script has to know of the record: the counter, how long the record is kept, the queue, whether this owner is
-- buried, the holder's owner id and first token, since when the lock is open, when tombstones are due for a sweep.
local function read(record, me)
  return redis.call('HMGET', record, 'l', 'u', 'q', 'x' .. me, 'o', 'f', 'm', 'b')
end
