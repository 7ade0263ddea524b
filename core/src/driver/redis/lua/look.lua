-- KEYS: lock, record. Answers kind, counter, clock and how many hold; of each mode, token, ms left, since, info, owner (of
-- one that is not ours: token -1); of every waiter mode, since, info.
local lock = read(KEYS[1], KEYS[2], UNDER(KEYS[1]), '')
local reply, count = { lock.kind, lock.last, now, 0 }, 0

local function add(mode, token, rest, since, info, owner)
  count = count + 1
  for _, word in ipairs({ mode, token, rest, since, info, owner }) do
    reply[#reply + 1] = word
  end
end

local shared = lock.kind ~= KIND_MUTEX and lock.holder == mark_of(lock.kind)
if lock.holder and not shared AND_ALONE then
  if lock.kind == KIND_MUTEX and lock.holder == lock.owner then
    local packed = call('HGET', lock.record, 'h')
    add(MODE_EXCLUSIVE, lock.first, math.min(call('PTTL', lock.key), lock.longest), struct.unpack('<d', packed, 41), sub(packed, 57), lock.owner)
  else
    add(MODE_EXCLUSIVE, -1, call('PTTL', lock.key), 0, '', '')
  end
end
local plain = lock.kind == KIND_SEMAPHORE and MODE_PERMIT or MODE_READ
local all, all_ends = {}, {}
if shared then all, all_ends = owners(lock) end
for at, owner in ipairs(all) do
  local ends = math.min(all_ends[at], now + lock.longest)
  if ends > now then
    local packed = call('HGET', lock.record, 'h' .. owner)
    local token, since, rest = struct.unpack('<dd', packed)
    add(owner == lock.writer and MODE_WRITE or plain, token, math.floor((ends - now) / 1000), since, sub(packed, rest), owner)
  end
end
ADD_OTHERS
reply[4] = count
for at = 1, #lock.queue, 33 do
  local ticket = ticket_of(lock, sub(lock.queue, at, at + 31))
  if ticket and now < ticket.refreshed + TICKET_LIFE then
    reply[#reply + 1] = ticket.mode
    reply[#reply + 1] = ticket.since
    reply[#reply + 1] = ticket.info
  end
end
if not reply[5] then reply[1] = KIND_MUTEX end
return reply
