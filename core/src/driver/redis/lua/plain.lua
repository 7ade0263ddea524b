-- What a grant would draw now.
local token = now > reached and now or reached + 1
local top = token + block - 1
-- Nobody waits, nobody is tombstone, and the record is kept for long enough.
local plain = kept >= top + ttl * 1000 * COUNTER_TTLS and top <= TOKEN_MAX and (block == 1 or top <= now + TOKEN_LEAD)
