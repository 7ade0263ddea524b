-- What the Take in hand asks for; there are several.
local me, ttl, wait, block, floor, reached, channel, info
