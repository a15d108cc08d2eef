-- KEYS: the object, the index, the bytes. ARGV: the object's name, the period.
local name, period = ARGV[1], tonumber(ARGV[2])
local value = redis.call('GET', KEYS[1])
local entry = redis.call('HGET', KEYS[2], name)
if entry then
    local bytes, uses, _, until_ms = read(entry, period)
    -- Without memory the popularity stays as it is, and the object is still found.
    if value then
        redis.pcall('HSET', KEYS[2], name, write(bytes, math.min(uses + 1, 1000000), period, until_ms))
    elseif type(redis.pcall('DECRBY', KEYS[3], bytes)) == 'number' then
        redis.call('HDEL', KEYS[2], name)
    end
end
return value
