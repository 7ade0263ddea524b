-- Waiters of a plain lock all listen on one channel, those of a fair lock each on its own; the first in their line is told.
local channel = named('redisson_lock__channel', lock.key)
announce(channel, '0')
local first = redis.pcall('LINDEX', named('redisson_lock_queue', lock.key), 0)
if type(first) == 'string' then announce(channel .. ':' .. first, '0') end
