-- The state of the log, and a sign of life of the node that asks. KEYS: state, lines, nodes.
-- ARGV: a name for a new log, the number that the node has applied, the node's process, what others may know of it, for how many
-- milliseconds it counts as live.
local reign = reign_of(KEYS[1], KEYS[2], ARGV[1])
local head = redis.call('HGET', KEYS[1], 'number') or '0'
local written_in = redis.call('HGET', KEYS[1], 'written_in') or ''
local about = redis.call('XRANGE', KEYS[2], ARGV[2] .. '-0', ARGV[2] .. '-0')[1]
local next = redis.call('XRANGE', KEYS[2], '(' .. ARGV[2] .. '-0', '+', 'COUNT', 1)[1]
local time = redis.call('TIME')
local until_ms = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[5]
redis.call('HSET', KEYS[3], ARGV[3], string.format('%.0f', until_ms) .. ' ' .. ARGV[4])
return {reign, head, written_in, about and about[2][2] or '', next and next[1] or ''}
