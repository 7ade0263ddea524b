-- The head of most scripts: the server's clock, in µs since 1970.
local seen
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
