-- The native interface: results, errors, and objects that end.
local stage = require "stage"
local lu = require "luaunit"
local eyewall = require "resty.eyewall"

TestNative = {}

local function test(name, work)
    TestNative["test_" .. name:gsub("%W", "_")] = function()
        stage.with_volume(function(path)
            work(assert(eyewall.open(path, { size = "4M" })), path)
        end)
    end
end

test("puts, gets and properties", function(cache)
    lu.assertNil(cache:get "/")
    lu.assertNil(cache:lookup "/")
    lu.assertNil(cache:ttl "/")
    local serial = cache:put("/", "<h1>Hello</h1>", { ttl = 3600, stale = 1, metadata = "text/html", tags = { "news", "sport" } })
    local entry = cache:lookup "/"
    lu.assertEquals({ entry.state, entry.value, entry.metadata }, { "fresh", "<h1>Hello</h1>", "text/html" })
    lu.assertEquals(entry.tags, { "news", "sport" })
    lu.assertTrue(entry.serial == serial and entry.ttl_left <= 3600 and entry.usable_left <= 3601 and not entry.is_copy)
    lu.assertTrue(cache:ttl "/" <= 3600 and entry.created > 1700000000)
    lu.assertEquals(cache:put("large", ("x"):rep(200000)) ~= nil and cache:get "large", ("x"):rep(200000))
    lu.assertEquals(cache:ttl "large", math.huge)
    lu.assertTrue(cache:contains "/")
    lu.assertTrue(cache:remove "/")
    lu.assertFalse(cache:remove "/")
    lu.assertFalse(cache:contains "/")
    lu.assertFalse(cache:remove("large", serial))
    cache:put(5, 6)
    lu.assertEquals(cache:get(5), "6")
end)

test("conditions and counters", function(cache)
    local serial = cache:add("k", "1")
    lu.assertFalse(cache:add("k", "2"))
    lu.assertTrue(cache:replace("k", serial, "3") ~= false)
    lu.assertFalse(cache:replace("k", serial, "4"))
    lu.assertEquals(cache:get "k", "3")
    lu.assertEquals(cache:increment("n", 2, { start = 10, ttl = 3600 }), 12)
    lu.assertEquals(cache:increment "n", 13)
    lu.assertTrue(cache:ttl "n" <= 3600)
    lu.assertTrue(cache:touch("n", { ttl = 1000 }))
    lu.assertTrue(cache:ttl "n" <= 1000)
    lu.assertFalse(cache:touch("absent", { ttl = 10 }))
end)

test("errors have a message and a name", function(cache)
    local result, message, name = cache:put("", "value")
    lu.assertEquals({ result, name }, { nil, "key_empty" })
    lu.assertStrContains(message, "key is empty")
    name = select(3, cache:put("k", ("x"):rep(2000000)))
    lu.assertEquals(name, "entry_too_large")
    cache:put("text", "words")
    name = select(3, cache:increment("text", 1))
    lu.assertEquals(name, "not_a_counter")
    name = select(3, cache:put("k", "v", { tags = { "" } }))
    lu.assertEquals(name, "tag_length")
    lu.assertErrorMsgContains("bad option ttl", cache.put, cache, "k", "v", { ttl = 0 })
    lu.assertErrorMsgContains("bad option tags", cache.put, cache, "k", "v", { tags = { 1 } })
    local tags = {}
    for number = 1, 33 do
        tags[number] = "t" .. number
    end
    lu.assertErrorMsgContains("at most 32 tags", cache.put, cache, "k", "v", { tags = tags })
    name = select(3, eyewall.open("/dev/null/volume"))
    lu.assertEquals(name, "io")
    name = select(3, eyewall.open(stage.path() .. "-absent", { must_exist = true }))
    lu.assertEquals(name, "not_found")
end)

test("purges, hard and soft", function(cache)
    local epoch = cache:now()
    cache:put("/a/1", "1", { tags = "a" })
    cache:put("/a/2", "2", { tags = { "a", "b" } })
    cache:put("/b/3", "3", { ttl = 3600, stale = 3600 })
    lu.assertTrue(cache:purge_tag("a", { soft = true }))
    lu.assertNil(cache:get "/a/1")
    lu.assertEquals(cache:lookup("/a/1").state, "stale")
    lu.assertTrue(cache:purge_tag "b")
    lu.assertNil(cache:lookup "/a/2")
    lu.assertTrue(cache:purge_prefix("/b/", { soft = true }))
    lu.assertEquals(cache:lookup("/b/3").state, "stale")
    lu.assertTrue(cache:purge_all())
    lu.assertNil(cache:lookup "/b/3")
    -- A value that was made before the purge is purged, too.
    cache:put("/b/4", "4", { begun_in = epoch })
    lu.assertNil(cache:get "/b/4")
    cache:put("/b/5", "5")
    lu.assertTrue(cache:clear() >= 1)
    lu.assertNil(cache:get "/b/5")
    lu.assertTrue(cache:sweep() >= 0)
    lu.assertTrue(cache:sync())
end)

test("iteration and statistics", function(cache)
    local expected = {}
    for number = 1, 50 do
        cache:put("k" .. number, "v")
        expected["k" .. number] = true
    end
    cache:put_negative("none", 404, { ttl = 3600 })
    local seen = {}
    for key in cache:keys() do
        seen[key] = true
    end
    lu.assertEquals(seen, expected)
    for key in cache:keys(true) do
        seen[key] = true
    end
    lu.assertTrue(seen.none)
    local next_key, stop = cache:keys()
    lu.assertTrue(seen[next_key()])
    stop()
    stop()
    lu.assertNil(next_key())
    local stats = cache:stats()
    lu.assertEquals({ stats.puts, stats.size_bytes, stats.processes }, { 51, 4194304, 1 })
    lu.assertEquals(cache:size(), 4194304)
    lu.assertEquals(cache:entry_bytes_max(), 262144)
    lu.assertEquals(cache:lookup("none").reason, 404)
end)

test("a held entry keeps its bytes", function(cache)
    local value = ("0123456789"):rep(1000)
    cache:put("k", value, { metadata = "m" })
    local hit = cache:hold "k"
    for number = 1, 2000 do
        cache:put("other" .. number, ("y"):rep(9000))
    end
    cache:remove "k"
    lu.assertEquals(hit:bytes(), value)
    lu.assertEquals({ hit:bytes(5, 3), hit:bytes(9998, 10), hit:bytes(10000), hit.length }, { "567", "89", "", 10000 })
    lu.assertEquals({ hit:key(), hit:metadata(), hit:check() }, { "k", "m", true })
    lu.assertErrorMsgContains("bad range", hit.bytes, hit, 10001)
    hit:release()
    hit:release()
    lu.assertErrorMsgContains("the hit is released", hit.bytes, hit)
    lu.assertNil(cache:hold "k")
end)

test("fill makes a value once", function(cache)
    local made = 0
    local function make(key)
        made = made + 1
        return "value of " .. key, { ttl = 3600, tags = "made" }
    end
    lu.assertEquals({ cache:fill("k", make) }, { "value of k", nil, "made" })
    lu.assertEquals({ cache:fill("k", make) }, { "value of k", nil, "hit" })
    lu.assertEquals({ made, cache:lookup("k").tags }, { 1, { "made" } })
    lu.assertEquals({ cache:fill("none", function() return nil, "no origin" end) }, { nil, "no origin", "failed" })
    lu.assertErrorMsgContains("breaks", cache.fill, cache, "none", function() error "breaks" end)
    lu.assertErrorMsgContains("has to return a string", cache.fill, cache, "none", function() return 1 end)
    lu.assertErrorMsgContains("bad option ttl", cache.fill, cache, "none", function() return "v", { ttl = -1 } end)
    local function nothing() end
    lu.assertEquals({ cache:fill("none", nothing, { negative_ttl = 3600 }) }, { nil, nil, "negative" })
    lu.assertEquals({ cache:fill("none", error) }, { nil, nil, "negative" })
    -- What can't be stored is returned, with the reason.
    local value, _, state, failure = cache:fill("large", function() return ("x"):rep(3000000) end)
    lu.assertEquals({ #value, state }, { 3000000, "made" })
    lu.assertStrContains(failure, "3000056 bytes")
    lu.assertNil(cache:get "large")
end)

test("a fill returns a stale value while another caller renews it", function(cache)
    cache:put("k", "old", { tags = "t" })
    cache:purge_tag("t", { soft = true })
    local _, flight = cache:begin_fill "k"
    lu.assertEquals({ cache:fill("k", error, { use_stale = true }) }, { "old", nil, "stale" })
    local value, message, name = cache:fill("k", error, { wait = 0.001 })
    lu.assertEquals({ value, name }, { nil, "busy" })
    lu.assertStrContains(message, "fill of the same key")
    lu.assertTrue(flight:store "new")
    lu.assertErrorMsgContains("the flight has ended", flight.store, flight, "again")
    flight:abandon()
    lu.assertEquals(cache:get "k", "new")
end)

test("claims and writers", function(cache)
    cache:put("k", "1")
    local claim = cache:claim "k"
    lu.assertEquals(claim.value, "1")
    lu.assertTrue(claim:put "2")
    lu.assertErrorMsgContains("ended already", claim.put, claim, "3")
    claim = cache:claim "k"
    cache:put("k", "3")
    lu.assertFalse(claim:put "4")
    claim = cache:claim "k"
    lu.assertTrue(claim:remove())
    claim = cache:claim "k"
    lu.assertNil(claim.value)
    claim:stop()
    claim:stop()
    local writer = cache:writer("k", { ttl = 60 }, 6)
    writer:write "abc"
    writer:write "def"
    lu.assertNil(cache:get "k")
    lu.assertTrue(writer:commit())
    lu.assertErrorMsgContains("has ended", writer.write, writer, "g")
    lu.assertEquals(cache:get "k", "abcdef")
    writer = cache:writer "k"
    writer:write "x"
    writer:abort()
    writer:abort()
    lu.assertEquals(cache:get "k", "abcdef")
end)

test("the collector ends objects and closes the cache last", function(cache, path)
    local function make_objects()
        local opened = assert(eyewall.open(path))
        opened:put("k", "v")
        local hit = opened:hold "k"
        local _, flight = opened:begin_fill "f"
        opened:claim "c"
        opened:writer "w"
        opened:close()
        return hit, flight
    end
    local hit, flight = make_objects()
    -- A closed cache stays open for what is held.
    lu.assertEquals(hit:bytes(), "v")
    lu.assertTrue(flight:store "made")
    hit, flight = nil, nil
    lu.assertNil(hit or flight)
    collectgarbage()
    collectgarbage()
    for _, key in ipairs { "f", "c", "w" } do
        lu.assertTrue(cache:claim(key) ~= nil)
    end
    lu.assertEquals(cache:stats().pins, 0)
end)

-- Defines a test of an object that outlives the call of `close`, and whose end closes the cache. The collector has no
-- part in it. `begin(cache)` returns the object; `finish` ends it, and returns what the key has then.
local function test_last(name, begin, finish)
    test(name .. " that ends after close still has its volume", function(cache, path)
        collectgarbage "stop"
        cache:put("k", "old")
        -- The map of the process doesn't have the path of a file that it has created itself.
        cache:close()
        cache = assert(eyewall.open(path, { must_exist = true }))
        local object = begin(cache)
        cache:close()
        lu.assertTrue(stage.is_mapped(path))
        local expected = finish(object)
        lu.assertFalse(stage.is_mapped(path))
        collectgarbage "restart"
        cache = assert(eyewall.open(path, { must_exist = true }))
        lu.assertEquals({ cache:get "k", cache:stats().pins }, { expected, 0 })
    end)
end

test_last("a hit", function(cache)
    return cache:hold "k"
end, function(hit)
    lu.assertEquals(hit:bytes(), "old")
    hit:release()
    return "old"
end)

test_last("a flight", function(cache)
    cache:remove "k"
    return select(2, cache:begin_fill "k")
end, function(flight)
    lu.assertTrue(flight:store "made")
    return "made"
end)

test_last("a claim", function(cache)
    return cache:claim "k"
end, function(claim)
    lu.assertTrue(claim:put "changed")
    return "changed"
end)

test_last("a writer", function(cache)
    return cache:writer "k"
end, function(writer)
    lu.assertTrue(writer:write "whole")
    lu.assertTrue(writer:commit())
    return "whole"
end)

test_last("an iterator", function(cache)
    return cache:keys()
end, function(next_key)
    lu.assertEquals({ next_key(), next_key() }, { "k" })
    return "old"
end)

test("a call with a wrong argument leaves its object as it was", function(cache)
    local _, flight = cache:begin_fill "k"
    lu.assertErrorMsgContains("cannot convert", flight.store, flight, {})
    lu.assertTrue(flight:store "made")
    lu.assertEquals(cache:get "k", "made")
end)

test("a child uses the cache of its parent", function(cache)
    cache:put("k", "parent")
    local hit = cache:hold "k"
    local child = stage.fork(function()
        local seen = cache:get "k"
        hit:release()
        cache:put("k", "child")
        return seen == "parent" and cache:get "k" == "child"
    end)
    lu.assertEquals(stage.wait(child), 0)
    lu.assertEquals(hit:bytes(), "parent")
    hit:release()
    lu.assertEquals(cache:get "k", "child")
end)

stage.run()
