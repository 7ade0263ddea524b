-- Another mode for a hold. KEYS: lock, record. ARGV: owner, mode, ttl in ms, number of the change, channel.
local me, mode, turn = ARGV[1], ARGV[2] + 0, ARGV[4] + 0
local lock = read(KEYS[1], KEYS[2], UNDER(KEYS[1]), me)
if enter(lock) then return GONE end

local function change()
  local token, rest = prolong(lock, me, ARGV[3] + 0)
  if not token then return GONE end
  local from = me == lock.special and lock.mode or MODE_READ
  local _, since, newest, info = details(lock, me)
  if turn < newest then return { HELD, left(lock) } end
  local upgradeable = from == MODE_UPGRADEABLE or from == MODE_UPGRADING
  if upgradeable and mode == MODE_WRITE then
    if lock.count > 1 or KEEPS_OUT(lock, MODE_WRITE) then
      become(lock, me, MODE_UPGRADING)
      put(lock, 'g', ARGV[5])
      describe(lock, me, token, since, turn, info)
      return queued(lock, lock.count - 1)
    end
    return { GRANTED, become_writer(lock, me, turn), rest }
  end
  describe(lock, me, token, since, turn, info)
  local down = from == MODE_WRITE and (mode == MODE_UPGRADEABLE or mode == MODE_READ)
  if not (down or from == mode or upgradeable and (mode == MODE_UPGRADEABLE or mode == MODE_READ)) then
    return { HELD, left(lock) }
  end
  become(lock, me, mode)
  return { GRANTED, token, rest }
end

local reply = change()
settle(lock, me)
store(lock)
return reply
