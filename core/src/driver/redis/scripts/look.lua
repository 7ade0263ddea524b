-- Shows a lock of any kind. KEYS: lock, record. Answers kind, counter, clock and how many hold; of each mode, token, ms left, since, info,
-- owner (of one that is not ours: token -1); of every waiter mode, since, info.
local lock = Lock.read(KEYS[1], KEYS[2], '')
local theirs = lock.others_hold and lock:others_hold()
local reply, count = { lock.kind, lock.last, now, 0 }, 0

local function add(mode, token, rest, since, info, owner)
  count = count + 1
  for _, word in ipairs({ mode, token, rest, since, info, owner }) do
    reply[#reply + 1] = word
  end
end

local shared = lock.kind ~= 1 and lock.holder == Lock.mark_of(lock.kind)
if lock.holder and not shared and not theirs then
  if lock.kind == 1 and lock.holder == lock.owner then
    add(1, lock.first, math.min(redis.call('PTTL', lock.key), lock.longest), lock.since, string.sub(lock.noted, 57), lock.owner)
  else
    add(1, -1, redis.call('PTTL', lock.key), 0, '', '')
  end
end
local all, all_ends = {}, {}
if shared then all, all_ends = lock:owners() end
for at, owner in ipairs(all) do
  local ends = math.min(all_ends[at], now + lock.longest)
  if ends > now then
    local packed = redis.call('HGET', lock.record, 'h' .. owner)
    local token, since, rest = struct.unpack('<dd', packed)
    local mode = owner == lock.writer and 3 or lock.kind == 3 and 4 or 2
    add(mode, token, math.floor((ends - now) / 1000), since, string.sub(packed, rest), owner)
  end
end
for _, one in ipairs(theirs or {}) do
  reply[1] = 2
  add(one.mode, -1, one.rest, 0, '', '')
end
reply[4] = count
for at = 1, #lock.queue, 33 do
  local ticket = lock:ticket_of(string.sub(lock.queue, at, at + 31))
  if ticket and now < ticket.refreshed + 5000000 then
    reply[#reply + 1] = ticket.mode
    reply[#reply + 1] = ticket.since
    reply[#reply + 1] = ticket.info
  end
end
if not reply[5] then reply[1] = 1 end
return reply
