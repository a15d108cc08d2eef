-- KEYS: the object, the index, the bytes. ARGV: the object's name, the period, the object, its bytes, for how many milliseconds, the
-- most bytes of all, the beginning of the objects' keys. Returns whether it is stored, and the bytes of all.
local name, period, bytes, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local total = tonumber(redis.call('GET', KEYS[3]) or 0)
if bytes > most then return {0, total} end

-- If there is no memory, this fails before anything has changed.
redis.call('SET', KEYS[3], string.format('%.0f', total), 'KEEPTTL')

local uses = 1
local old = redis.call('HGET', KEYS[2], name)
if old then
    local old_bytes, old_uses = read(old, period)
    total, uses = total - old_bytes, math.max(old_uses, 1)
    redis.call('HDEL', KEYS[2], name)
    redis.call('DEL', KEYS[1])
end

-- Of a few objects at random, those that have expired go, and the least popular ones. So the work is bounded.
for _ = 1, 64 do
    if total + bytes <= most then break end
    local sample = redis.call('HRANDFIELD', KEYS[2], 16, 'WITHVALUES')
    if #sample == 0 then
        total = 0
        break
    end
    local found = {}
    for at = 1, #sample, 2 do
        local its_bytes, its_uses, of, until_ms = read(sample[at + 1], period)
        if until_ms <= now_ms then its_uses = -1 end
        found[#found + 1] = {name = sample[at], bytes = its_bytes, uses = its_uses, of = of}
    end
    table.sort(found, function(one, other)
        if one.uses ~= other.uses then return one.uses < other.uses end
        return one.of < other.of
    end)
    for at, victim in ipairs(found) do
        if total + bytes <= most or at > 4 and victim.uses >= 0 then break end
        redis.call('DEL', ARGV[7] .. victim.name)
        redis.call('HDEL', KEYS[2], victim.name)
        total = total - victim.bytes
    end
end
local fits = total + bytes <= most
if fits then
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[5])
    redis.call('HSET', KEYS[2], name, write(bytes, uses, period, now_ms + ARGV[5]))
    total = total + bytes
end
redis.call('SET', KEYS[3], string.format('%.0f', math.max(total, 0)), 'KEEPTTL')
-- The last object to expire leaves nothing behind.
for at = 2, 3 do
    if redis.call('PTTL', KEYS[at]) < tonumber(ARGV[5]) then redis.call('PEXPIRE', KEYS[at], ARGV[5]) end
end
return {fits and 1 or 0, total}
