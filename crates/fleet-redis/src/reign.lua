-- The present reign: the word for this server's run as the one that writes, and the name of its list. An empty server gets a new list.
local function reign_of(state, lines, name)
    local run = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
    local known = redis.call('HGET', state, 'name')
    if not known then
        redis.call('DEL', state, lines)
        redis.call('HSET', state, 'name', name)
        known = name
    end
    return string.sub(run, 1, 20) .. '-' .. known
end
