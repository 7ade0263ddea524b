if beneath[lock.key] or lock.released then call('DEL', lock.key) end
call('HSET', lock.key, field_of(lock.holder), 1)
call('PEXPIRE', lock.key, lock.granted)
