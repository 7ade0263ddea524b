for field in pairs(lock.kind == KIND_READ_WRITE and shared and beneath[lock.key] or {}) do
  if field ~= 'mode' and not owner_of(field) then add(MODE_READ, -1, call('PTTL', lock.key), 0, '') end
end
