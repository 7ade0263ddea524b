-- KEYS: cell. Answers trail (or 0: nothing there), since, value, clock.
local cell = call('HMGET', KEYS[1], 't', 's', 'v')
return { cell[1] or 0, (cell[2] or 0) + 0, cell[3], now }
