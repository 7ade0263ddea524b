-- Another mode for a hold. KEYS: lock, record. ARGV: owner, mode, ttl in ms, number of the change, channel.
local me, mode, turn = ARGV[1], ARGV[2] + 0, ARGV[4] + 0
local lock = read(KEYS[1], KEYS[2], UNDER(KEYS[1]), me)
if enter(lock) then return GONE end

local function change()
  local token, rest = prolong(lock, me, ARGV[3] + 0)
  if not token then return GONE end
  local at = find(lock, me)
  local from, ends = byte(lock.holds, at + 32), ends_at(lock, at)
  local _, since, newest, info = details(lock, me)
  if turn < newest then return { HELD, left(lock) } end
  local upgradeable = from == MODE_UPGRADEABLE or from == MODE_UPGRADING
  if upgradeable and mode == MODE_WRITE then
    if #lock.holds > HOLD_SIZE or KEEPS_OUT(lock, MODE_WRITE) then
      write_hold(lock, at, HOLD_SIZE, me, MODE_UPGRADING, ends)
      put(lock, 'g', ARGV[5])
      describe(lock, me, token, since, turn, info)
      return queued(lock, #lock.holds / HOLD_SIZE - 1)
    end
    return { GRANTED, become_writer(lock, at, turn), rest }
  end
  describe(lock, me, token, since, turn, info)
  local down = from == MODE_WRITE and (mode == MODE_UPGRADEABLE or mode == MODE_READ)
  if not (down or from == mode or upgradeable and (mode == MODE_UPGRADEABLE or mode == MODE_READ)) then
    return { HELD, left(lock) }
  end
  write_hold(lock, at, HOLD_SIZE, me, mode, ends)
  return { GRANTED, token, rest }
end

local reply = change()
settle(lock, me)
store(lock)
return reply
