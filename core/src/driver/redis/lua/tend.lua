-- Renew and Refresh of many locks. KEYS: lock, record, and so on, then what lies beside them. ARGV: one word, of each lock
-- the owner, 1 for a Refresh, the ttl in ms.
local function renew_one(key, record, me, ttl, refresh)
  local lock = read(key, record, UNDER(key), me)
  if enter(lock) then return { GONE, 0, 0, 0, 0 } end
  settle(lock, me)
  local first, rest = prolong(lock, me, ttl)
  if first then
    store(lock)
    return first, rest
  end
  local place = refresh and string.find(lock.queue, me, 1, true)
  if not place then
    store(lock)
    return { GONE, 0, 0, 0, 0 }
  end
  local ticket = ticket_of(lock, me)
  if place == 1 and is_open(lock, ticket) and admits(lock, ticket.mode, ticket.limit, ticket.permits) then
    drop(lock, place, me)
    first = next_token(lock)
    -- Who looks again is told no number of tokens, so it is one.
    add_holder(lock, me, ticket.mode, ttl, 1, ticket.info, first, ttl, ticket.permits)
    SETTLE_THE_REST
    store(lock)
    return first, ttl
  end
  ticket.refreshed, ticket.ttl = now, ttl
  write(lock, ticket)
  store(lock)
  return queued(lock, (place - 1) / 33)
end

-- In one word the tokens of those who hold for as long as they asked for. Of the others, whose token is 0, it is said how
-- they stand.
local tokens, replies = {}, { '' }
local entries = ARGV[1]
for at = 1, #entries / ENTRY_SIZE do
  local begin = ENTRY_SIZE * (at - 1)
  local ttl = sub(entries, begin + 34, begin + ENTRY_SIZE) + 0
  -- One lock that is none must not fail the others.
  local ok, reply, rest = pcall(renew_one, KEYS[2 * at - 1], KEYS[2 * at], sub(entries, begin + 1, begin + 32), ttl,
    sub(entries, begin + 33, begin + 33) == '1')
  if ok and rest == ttl then
    tokens[at] = WORD(reply)
  else
    if not ok then
      reply = { FAILED, type(reply) == 'table' and reply.err or tostring(reply), 0, 0, 0 }
    elseif rest then
      reply = { GRANTED, reply, rest, 0, 0 }
    end
    tokens[at] = WORD(0)
    for word = 1, 5 do
      replies[#replies + 1] = reply[word]
    end
  end
end
replies[1] = table.concat(tokens)
return replies
