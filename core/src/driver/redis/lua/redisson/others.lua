local theirs = beneath[lock.key] or {}

local function add_theirs(kind, mode, rest)
  reply[1] = kind
  add(mode, -1, rest, 0, '', '')
end

if theirs.mode then
  for field, count in pairs(theirs) do
    local reads = theirs.mode == 'read'
    -- A writer may read besides: it is one holder.
    local shown = reads and field ~= 'mode' or string.find(field, ':write$')
    local rest = shown and not is_ours(lock, field) and left_of(lock, field, count)
    if rest and (rest > 0 or not reads) then add_theirs(KIND_READ_WRITE, reads and MODE_READ or MODE_WRITE, rest) end
  end
elseif theirs.ends then
  local ended = 0
  for member, ends in pairs(theirs.ends) do
    local rest = math.floor(ends - now / 1000)
    if rest <= 0 then
      ended = ended + 1
    elseif not ends_of(lock, member) then
      add_theirs(KIND_SEMAPHORE, MODE_PERMIT, rest)
    end
  end
  -- Permits without a lease show by their lack alone; those that have ended come back with the next step.
  if theirs.free and theirs.free + ended < 1 and count == 0 then add_theirs(KIND_SEMAPHORE, MODE_PERMIT, -1) end
end
