-- The readers and writers of Redisson's, for look.lua; nil: what lies there is a mutex.
function Lock.others_hold(lock)
  local beneath_it, all = beneath[lock.key] or {}, {}
  if beneath_it.mode then
    local reads = beneath_it.mode == 'read'
    for field, count in pairs(beneath_it) do
      -- A writer may read besides: it is one holder.
      local shown = reads and field ~= 'mode' or string.find(field, ':write$')
      local rest = shown and not is_ours(lock, field) and left_of(lock, field, count)
      if rest and (rest > 0 or not reads) then all[#all + 1] = { mode = reads and 2 or 3, rest = rest } end
    end
    return all
  end
end
