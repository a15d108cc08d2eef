-- The Lua actor of bindings/cases: answers the questions on its standard input (bindings/cases/README.md). It needs
-- resty.eyewall in LUA_PATH.

local ffi = require "ffi"
local eyewall = require "resty.eyewall"

ffi.cdef [[
int kill(int process, int signal);
int getpid(void);
]]

local cache, claim, writer
-- The serial of the entry that this actor read last.
local serial = 0

-- An error of a call becomes the actor's answer.
local function check(result, message, name)
    if result == nil and name then
        io.stderr:write(message, "\n")
        error({ name = name }, 0)
    end
    return result
end

-- Milliseconds as seconds, and tags as a list.
local function put_options(given)
    local tags
    if given.tags then
        tags = {}
        for tag in given.tags:gmatch "[^,]+" do
            tags[#tags + 1] = tag
        end
    end
    return {
        ttl = given.ttl and tonumber(given.ttl) / 1000,
        stale = given.stale and tonumber(given.stale) / 1000,
        tags = tags,
    }
end

-- Appends to a value under its claim; tries again if a put superseded the claim.
local function append(key, bytes)
    while true do
        local changed = check(cache:claim(key))
        local value = (changed.value or "") .. bytes
        if check(changed:put(value)) then
            return "value", value
        end
    end
end

local function fill(given, key, made)
    local value, message, state = cache:fill(key, function()
        if given["then"] == "die" then
            ffi.C.kill(ffi.C.getpid(), 9)
        elseif given["then"] == "fail" then
            return nil, "gives up"
        end
        return made
    end)
    if state == "failed" then
        return "failed"
    end
    check(value, message, message and state)
    return state == "made" and "made" or "value", value
end

local function purge(given, what, which)
    local soft = { soft = given.mode == "soft" }
    if what == "tag" then
        check(cache:purge_tag(which, soft))
    elseif what == "prefix" then
        check(cache:purge_prefix(which, soft))
    else
        check(cache:purge_all(soft))
    end
    return "ok"
end

local answers = {
    open = function(given, path, size)
        cache = check(eyewall.open(path, { size = tonumber(size), fleet = given.fleet ~= nil }))
        return "ok"
    end,
    put = function(given, key, value)
        check(cache:put(key, value, put_options(given)))
        return "ok"
    end,
    get = function(_, key)
        local entry = check(cache:lookup(key))
        if not entry or entry.state ~= "fresh" then
            return "miss"
        end
        serial = entry.serial
        return "value", check(cache:get(key)) or entry.value
    end,
    negative = function(given, key, reason)
        check(cache:put_negative(key, tonumber(reason), put_options(given)))
        return "ok"
    end,
    lookup = function(_, key)
        local entry = check(cache:lookup(key))
        if not entry then
            return "miss"
        end
        return entry.state, entry.state == "negative" and tostring(entry.reason) or entry.value
    end,
    add = function(given, key, value)
        return check(cache:add(key, value, put_options(given))) and "ok" or "unmet"
    end,
    replace = function(_, key, value)
        return check(cache:replace(key, serial, value)) and "ok" or "unmet"
    end,
    remove = function(_, key)
        return check(cache:remove(key)) and "ok" or "miss"
    end,
    contains = function(_, key)
        return check(cache:contains(key)) and "yes" or "no"
    end,
    touch = function(given, key)
        return check(cache:touch(key, put_options(given))) and "ok" or "miss"
    end,
    increment = function(_, key, by)
        return "sum", ("%d"):format(check(cache:increment(key, tonumber(by))))
    end,
    append = function(_, key, bytes)
        return append(key, bytes)
    end,
    claim = function(_, key)
        claim = check(cache:claim(key))
        if claim.value then
            return "value", claim.value
        end
        return "none"
    end,
    store = function(_, value)
        return check(claim:put(value)) and "ok" or "superseded"
    end,
    fill = fill,
    begin = function(given, key)
        writer = check(cache:writer(key, put_options(given)))
        return "ok"
    end,
    write = function(_, bytes)
        check(writer:write(bytes))
        return "ok"
    end,
    commit = function()
        return check(writer:commit()) and "ok" or "superseded"
    end,
    abort = function()
        writer:abort()
        return "ok"
    end,
    purge = purge,
    clear = function()
        check(cache:clear())
        return "ok"
    end,
    count = function()
        local count = 0
        for _ in check(cache:keys()) do
            count = count + 1
        end
        return "count", tostring(count)
    end,
}

local function decoded(word)
    if word == "%" then
        return ""
    end
    return (word:gsub("%%(%x%x)", function(digits)
        return string.char(tonumber(digits, 16))
    end))
end

local function encoded(word)
    if word == "" then
        return "%"
    end
    return (word:gsub("[^%w_./-]", function(byte)
        return ("%%%02x"):format(byte:byte())
    end))
end

-- The number of words before the options, which are name=value. A purge of everything has one less.
local words_of = { open = 2, put = 2, add = 2, touch = 1, negative = 2, fill = 2, begin = 1, purge = 2 }

-- The words of the answer to a line.
local function answered(line)
    local question, words, options = nil, {}, {}
    for word in (line .. "\t"):gmatch "([^\t]*)\t" do
        word = decoded(word)
        local count = question == "purge" and words[1] == "all" and 1 or words_of[question] or math.huge
        if not question then
            question = word
        elseif #words < count then
            words[#words + 1] = word
        else
            local name, value = word:match "^([^=]*)=(.*)$"
            options[name] = value
        end
    end
    if not answers[question] then
        return { "cannot" }
    end
    local answer = { pcall(answers[question], options, unpack(words)) }
    if answer[1] then
        return { unpack(answer, 2) }
    end
    if type(answer[2]) == "table" then
        return { "error", answer[2].name }
    end
    error(answer[2], 0)
end

io.stdout:setvbuf "line"
for line in io.lines() do
    local answer = answered(line)
    for number, word in ipairs(answer) do
        answer[number] = encoded(word)
    end
    io.stdout:write(table.concat(answer, "\t"), "\n")
end
