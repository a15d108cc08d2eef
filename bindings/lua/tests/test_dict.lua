-- The interface of ngx.shared.DICT: results and messages are those of lua-nginx-module. test_nginx.py compares both.
local stage = require "stage"
local lu = require "luaunit"
local dict = require "resty.eyewall.dict"

TestDict = {}

-- Defines a test with a dictionary of 4 MiB.
local function test(name, work)
    TestDict["test_" .. name:gsub("%W", "_")] = function()
        stage.with_volume(function(path)
            work(assert(dict.open(path, { size = "4M", stale = 3600 })), path)
        end)
    end
end

local function pack(...)
    return { ... }
end

local function returns(expected, ...)
    lu.assertEquals(pack(...), expected)
end

local STORED = pack(true, nil, false)

test("each type comes back, with its flags", function(cache)
    for _, value in ipairs { "", "text", "8 bytes!", ("x"):rep(70000), "\0\255\n", 0, 1, -5, 0.1, 1e300, 2 ^ 53, -2 ^ 60, 1 / 0, true, false } do
        returns(STORED, cache:set("k", value))
        returns(pack(value), cache:get "k")
        returns(STORED, cache:set("k", value, 3600, 7))
        returns(pack(value, 7), cache:get "k")
        returns(pack(value, 7, false), cache:get_stale "k")
        returns(STORED, cache:set("k", value, 0, -1))
        returns(pack(value, -1), cache:get "k")
    end
    cache:set("k", 0 / 0)
    local value = cache:get "k"
    lu.assertTrue(value ~= value)
end)

test("keys and values that are refused", function(cache)
    for _, call in ipairs { "get", "get_stale", "set", "safe_set", "add", "safe_add", "replace", "delete", "lpop", "rpop", "llen", "ttl" } do
        returns(pack(nil, "nil key"), cache[call](cache, nil))
        returns(pack(nil, "empty key"), cache[call](cache, ""))
        returns(pack(nil, "key too long"), cache[call](cache, ("k"):rep(65536)))
    end
    returns(pack(nil, "nil key"), cache:incr(nil, 1))
    returns(pack(nil, "empty key"), cache:lpush("", 1))
    returns(pack(nil, "key too long"), cache:expire(("k"):rep(65536), 1))
    returns(pack(nil, "bad value type"), cache:set("k", {}))
    returns(pack(nil, "bad value type"), cache:lpush("k", true))
    returns(pack(false, "no memory", false), cache:set("k", ("x"):rep(2000000)))
    lu.assertErrorMsgContains('bad "exptime" argument', cache.set, cache, "k", 1, -1)
    lu.assertErrorMsgContains('bad "exptime" argument', cache.expire, cache, "k")
    lu.assertErrorMsgContains("bad init arg: number expected, got boolean", cache.incr, cache, "k", 1, true)
    lu.assertErrorMsgContains('must provide "init"', cache.incr, cache, "k", 1, nil, 5)
    lu.assertErrorMsgContains('bad "init_ttl" argument', cache.incr, cache, "k", 1, 0, -1)
    returns(STORED, cache:set(12, "number as key"))
    returns(pack "number as key", cache:get "12")
end)

test("add, replace and delete", function(cache)
    returns(pack(false, "not found", false), cache:replace("k", 1))
    returns(STORED, cache:add("k", 1))
    returns(pack(false, "exists", false), cache:add("k", 2))
    returns(STORED, cache:replace("k", 3))
    returns(pack(3), cache:get "k")
    returns(STORED, cache:delete "k")
    returns(STORED, cache:delete "k")
    returns(pack(nil), cache:get "k")
    returns(STORED, cache:set("k", 1))
    returns(STORED, cache:set("k", nil))
    returns(pack(nil), cache:get "k")
    returns(pack(false, "attempt to add or replace nil values", false), cache:add("k", nil))
    returns(pack(false, "attempt to add or replace nil values", false), cache:replace("k", nil))
end)

test("a value expires, and get_stale finds it", function(cache)
    returns(STORED, cache:set("k", "v", 0.001, 5))
    stage.wait_for(function() return cache:get "k" == nil end)
    returns(pack("v", 5, true), cache:get_stale "k")
    returns(pack(nil, "not found"), cache:ttl "k")
    returns(pack(nil, "not found"), cache:expire("k", 10))
    returns(pack(false, "not found", false), cache:replace("k", 1))
    returns(pack(nil, "not found"), cache:incr("k", 1))
    returns(pack(0), cache:llen "k")
    returns({ {} }, cache:get_keys())
    returns(STORED, cache:add("k", "again"))
    returns(pack("again", nil, false), cache:get_stale "k")
end)

test("ttl and expire", function(cache)
    returns(pack(nil, "not found"), cache:ttl "k")
    cache:set("k", "v")
    returns(pack(0), cache:ttl "k")
    returns(pack(true), cache:expire("k", 3600))
    local left = cache:ttl "k"
    lu.assertTrue(left > 0 and left <= 3600)
    returns(pack(true), cache:expire("k", 0))
    returns(pack(0), cache:ttl "k")
end)

test("incr counts whole numbers and fractions", function(cache)
    returns(pack(nil, "not found"), cache:incr("n", 1))
    returns(pack(11, nil, false), cache:incr("n", 1, 10))
    returns(pack(12), cache:incr("n", 1))
    returns(pack(12.5), cache:incr("n", 0.5))
    returns(pack(14.5, nil, false), cache:incr("n", 2, 0))
    returns(pack(14), cache:incr("n", -0.5))
    returns(pack(15, nil, false), cache:incr("n", 1, 0))
    returns(pack(15), cache:get "n")
    cache:set("n", 1, 0, 3)
    returns(pack(2, nil, false), cache:incr("n", 1, 0))
    returns(pack(3), cache:incr("n", 1))
    returns(pack(3, 3), cache:get "n")
    for _, value in ipairs { "text", "8 bytes!", true } do
        cache:set("n", value)
        returns(pack(nil, "not a number"), cache:incr("n", 1))
        returns(pack(nil, "not a number"), cache:incr("n", 1, 0))
        returns(pack(value), cache:get "n")
    end
end)

test("init_ttl is for a new counter only", function(cache)
    cache:incr("n", 1, 0, 3600)
    cache:incr("n", 1, 0, 36000)
    cache:incr("n", 1)
    cache:incr("n", 0.5)
    local left = cache:ttl "n"
    lu.assertTrue(left > 0 and left <= 3600)
    cache:incr("m", 1, 0)
    returns(pack(0), cache:ttl "m")
end)

test("lists are queues at both ends", function(cache)
    returns(pack(0), cache:llen "q")
    returns(pack(nil), cache:lpop "q")
    returns(pack(1), cache:rpush("q", "b"))
    returns(pack(2), cache:rpush("q", 3.5))
    returns(pack(3), cache:lpush("q", ""))
    returns(pack(4), cache:lpush("q", ("x"):rep(70000)))
    returns(pack(4), cache:llen "q")
    returns(pack(nil, "value is a list"), cache:get "q")
    returns(pack(nil, "value is a list"), cache:get_stale "q")
    returns(pack(nil, "not a number"), cache:incr("q", 1, 0))
    returns(pack(("x"):rep(70000)), cache:lpop "q")
    returns(pack(3.5), cache:rpop "q")
    returns(pack "", cache:lpop "q")
    returns(pack "b", cache:rpop "q")
    returns(pack(nil), cache:rpop "q")
    returns(pack(nil), cache:get "q")
    cache:set("k", "text")
    for _, call in ipairs { "lpop", "rpop", "llen" } do
        returns(pack(nil, "value not a list"), cache[call](cache, "k"))
    end
    returns(pack(nil, "value not a list"), cache:lpush("k", 1))
end)

test("flush_all and flush_expired", function(cache)
    for number = 1, 10 do
        cache:set("k" .. number, number, number > 5 and 3600 or 0)
    end
    returns(pack(), cache:flush_all())
    returns(pack(nil), cache:get "k1")
    returns(pack(1, nil, true), cache:get_stale "k1")
    cache:set("k1", "new")
    returns(pack(4), cache:flush_expired(4))
    returns(pack(5), cache:flush_expired())
    returns(pack(0), cache:flush_expired())
    returns(pack "new", cache:get "k1")
    returns(pack(nil), cache:get_stale "k2")
end)

test("get_keys", function(cache)
    for number = 1, 2000 do
        cache:set("k" .. number, number)
    end
    lu.assertEquals(#cache:get_keys(), 1024)
    lu.assertEquals(#cache:get_keys(10), 10)
    lu.assertEquals(#cache:get_keys(0), 2000)
end)

test("close closes the volume at once after calls that read only some of the keys", function(cache, path)
    for number = 1, 10 do
        cache:set("k" .. number, number)
    end
    cache:flush_all()
    cache:set("new", 1)
    cache:set("newer", 2)
    collectgarbage "stop"
    cache:close()
    -- The map of the process doesn't have the path of a file that it has created itself.
    cache = assert(dict.open(path, { must_exist = true }))
    lu.assertTrue(stage.is_mapped(path))
    lu.assertEquals({ #cache:get_keys(1), cache:flush_expired(4) }, { 1, 4 })
    cache:close()
    lu.assertFalse(stage.is_mapped(path))
    collectgarbage "restart"
    lu.assertErrorMsgContains("required pointer", cache.get_keys, cache)
end)

test("safe_set and safe_add refuse when the volume is full", function(cache)
    lu.assertEquals(cache:capacity(), 4 * 2 ^ 20)
    local free = cache:free_space()
    lu.assertTrue(free > 0 and free < cache:capacity())
    local value, stored = ("x"):rep(10000), 0
    local is_stored, message, forcible
    repeat
        is_stored, message, forcible = cache:safe_set("k" .. stored + 1, value)
        stored = stored + (is_stored and 1 or 0)
    until not is_stored
    returns(pack(false, "no memory", false), is_stored, message, forcible)
    returns(pack(false, "no memory", false), cache:safe_add("k", value))
    lu.assertTrue(stored > 200)
    -- Nothing was evicted for them.
    for number = 1, stored do
        lu.assertEquals(cache:get("k" .. number), value)
    end
    returns(STORED, cache:set("k", value))
end)

test("strings are shared with other languages", function(cache, path)
    local native = assert(require("resty.eyewall").open(path))
    native:put("page", "<h1>Hello</h1>", { metadata = "text/html" })
    returns(pack "<h1>Hello</h1>", cache:get "page")
    cache:set("other", "text")
    local entry = native:lookup "other"
    lu.assertEquals({ entry.value, entry.metadata }, { "text", "" })
    for _, letter in ipairs { "i", "n", "p", "b" } do
        for _, value in ipairs { "", "text" } do
            native:put("odd", value, { metadata = "Lua" .. letter .. "\0\0\0\0" })
            returns(pack(value), cache:get "odd")
            returns(pack(value, nil, false), cache:get_stale "odd")
        end
    end
    lu.assertEquals(native:stats().pins, 0)
end)

test("what can't be opened", function(_, path)
    local cache, message, name = dict.open(path, { size = "8M" })
    lu.assertNil(cache)
    lu.assertEquals(name, "options_differ")
    lu.assertStrContains(message, path)
    lu.assertErrorMsgContains("no option sice", dict.open, path, { sice = 1 })
    lu.assertErrorMsgContains("bad option size", dict.open, path, { size = "many" })
end)

stage.run()
