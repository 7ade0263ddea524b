if beneath[lock.key] then call('DEL', lock.key) end
call('HSET', lock.key, field_of(lock.holder), 1)
call('PEXPIRE', lock.key, lock.granted)
