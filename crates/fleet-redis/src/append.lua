-- Appends lines. KEYS: state, lines. ARGV: a name for a new log, how many lines to keep, the purger, the purges.
local reign = reign_of(KEYS[1], KEYS[2], ARGV[1])
local purges = #ARGV - 3
local last = redis.call('HINCRBY', KEYS[1], 'number', purges)
local before = redis.call('HGET', KEYS[1], 'written_in') or ''
redis.call('HSET', KEYS[1], 'written_in', reign)
for at = 1, purges do
    local id = string.format('%.0f-0', last - purges + at)
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], id, 'r', reign, 'b', before, 'w', ARGV[3], 'p', ARGV[3 + at])
    before = reign
end
return {reign, last}
