-- The readers, writers and permits of Redisson's, for look.lua; nil: what lies there is a mutex.
function Lock.others_hold(lock)
  local beneath_it, all = beneath[lock.key] or {}, {}
  if beneath_it.mode then
    local reads = beneath_it.mode == 'read'
    for field, count in pairs(beneath_it) do
      -- A writer may read besides: it is one holder.
      local shown = reads and field ~= 'mode' or string.find(field, ':write$')
      local rest = shown and not is_ours(lock, field) and left_of(lock, field, count)
      if rest and (rest > 0 or not reads) then all[#all + 1] = { kind = 2, mode = reads and 2 or 3, rest = rest } end
    end
    return all
  elseif beneath_it.ends then
    local ended = 0
    for member, ends in pairs(beneath_it.ends) do
      local rest = math.floor(ends - now / 1000)
      if rest <= 0 then
        ended = ended + 1
      elseif not lock:ends_of(member) then
        all[#all + 1] = { kind = 3, mode = 4, rest = rest }
      end
    end
    -- Permits without a lease show by their lack alone; those that have ended come back with the next step.
    if beneath_it.free and beneath_it.free + ended < 1 then all[#all + 1] = { kind = 3, mode = 4, rest = -1 } end
    return all
  end
end
