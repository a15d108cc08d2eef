-- The live nodes, and those that died in the last ten minutes. KEYS: nodes.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
    local until_ms, rest = string.match(all[at + 1], '^(%d+) (.*)$')
    local left = (tonumber(until_ms) or 0) - now_ms
    if left < -600000 then
        redis.call('HDEL', KEYS[1], all[at])
    else
        table.insert(found, {string.format('%.0f', left), rest})
    end
end
return found
