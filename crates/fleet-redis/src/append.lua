-- Appends a line. KEYS: state, lines. ARGV: a name for a new log, how many lines to keep, the purger, the purge.
local reign = reign_of(KEYS[1], KEYS[2], ARGV[1])
local number = redis.call('HINCRBY', KEYS[1], 'number', 1)
local before = redis.call('HGET', KEYS[1], 'written_in') or ''
redis.call('HSET', KEYS[1], 'written_in', reign)
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], number .. '-0', 'r', reign, 'b', before, 'w', ARGV[3], 'p', ARGV[4])
return {reign, number}
