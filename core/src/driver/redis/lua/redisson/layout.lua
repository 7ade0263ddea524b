-- How Redisson writes locks. Each key is read once; what lay under it then is kept here.
local beneath = {}

local function named(prefix, key)
  return prefix .. (string.find(key, '{', 1, true) and ':' .. key or ':{' .. key .. '}')
end

local function beside(key, suffix)
  return (string.find(key, '{', 1, true) and key or '{' .. key .. '}') .. ':' .. suffix
end

-- A holder is a client's UUID and a thread. Ours are threads 0, of which Java has none.
local function field_of(owner)
  return sub(owner, 1, 8) .. '-' .. sub(owner, 9, 12) .. '-' .. sub(owner, 13, 16) .. '-' .. sub(owner, 17, 20) ..
    '-' .. sub(owner, 21) .. ':0'
end

-- The owner id in a field that is ours.
local function owner_of(field)
  local a, b, c, d, e, rest = string.match(field, '^(%x+)%-(%x+)%-(%x+)%-(%x+)%-(%x+):0(.*)$')
  return (rest == '' or rest == ':write') and a .. b .. c .. d .. e
end

-- Clients of a cluster may listen by the other command. Who may not publish changes nothing else.
local function announce(channel, message)
  if redis.pcall('PUBLISH', channel, message) == 0 then redis.pcall('SPUBLISH', channel, message) end
end
