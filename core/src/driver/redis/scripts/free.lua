-- Ends a hold. KEYS: lock, record; in Redisson's layout what lies beside. ARGV: owner, 1 to leave the lock open; in a dialect with a prefix
-- whom to wake (see own.lua): a list, a channel; last the kind, if it is no mutex. Answers 4 freed or 5 gone.
local lock = Lock.read(KEYS[1], KEYS[2], ARGV[1], seen)
lock.wakes_list, lock.wakes_channel = ARGV[3], ARGV[4]
local word = lock:free(ARGV[1], ARGV[2] == '1')
lock:store()
return word
