-- Renews and Refreshes of many locks. KEYS: lock, record, and so on, then what lies beside them. ARGV: one word, of each lock the owner, 1
-- for a Refresh, the ttl in ms (32, 1 and 17 characters); last the kind, if they are no mutexes.
-- Answers for each lock the token if it is held for as long as was asked for, else 0 failed, why; 1 granted, token, ttl left; 2 queued as
-- by a Take (take.lua); 5 gone.
local function renew_one(key, record, me, ttl, refresh)
  local lock = Lock.read(key, record, me)
  if lock:enter() then return 5 end
  lock:settle(me)
  local first, rest = lock:prolong(me, ttl)
  if first then
    lock:store()
    return first, rest
  end
  local place = refresh and string.find(lock.queue, me, 1, true)
  if not place then
    lock:store()
    return 5
  end
  local ticket = lock:ticket_of(me)
  if place == 1 and lock:is_open(ticket) and lock:admits(ticket.mode, ticket.limit, ticket.permits) then
    lock:drop(place, me)
    -- Who looks again is told no number of tokens, so it is one.
    return lock:grant(me, ticket.mode, ticket.permits, ttl, 1, ticket.info), ttl
  end
  ticket.refreshed, ticket.ttl = now, ttl
  lock:write(ticket)
  lock:store()
  return lock:queued(place)
end

local replies, entries = {}, ARGV[1]
for at = 1, #entries / 50 do
  local begin = 50 * (at - 1)
  local ttl = string.sub(entries, begin + 34, begin + 50) + 0
  -- One lock that is none must not fail the others.
  local ok, reply, rest = pcall(renew_one, KEYS[2 * at - 1], KEYS[2 * at], string.sub(entries, begin + 1, begin + 32), ttl,
    string.sub(entries, begin + 33, begin + 33) == '1')
  if not ok then
    reply = { 0, type(reply) == 'table' and reply.err or tostring(reply) }
  elseif rest and rest ~= ttl then
    reply = { 1, reply, rest }
  end
  replies[at] = reply
end
return replies
