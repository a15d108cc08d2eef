-- Processes write, count, fill and evict in one small volume, and are killed at any instruction. No reader sees a byte
-- that nobody put, and the others go on.
local stage = require "stage"
local lu = require "luaunit"
local eyewall = require "resty.eyewall"
local dict = require "resty.eyewall.dict"

local KEYS = 300
local ROUNDS = os.getenv "EYEWALL_SOAK" and 5000 or 200

-- Each value is made of its key and a length, so that a reader recognises a wrong byte.
local function value_of(key, number)
    local length = 1 + number * 7919 % 20000
    local word = key .. ":" .. length .. ";"
    return word:rep(math.floor(length / #word) + 1)
end

local function is_right(key, value)
    local length = tonumber(value:match "^[^:]*:(%d+);")
    if not length or value:sub(1, #key + 1) ~= key .. ":" then
        return false
    end
    local word = key .. ":" .. length .. ";"
    return value == word:rep(math.floor(length / #word) + 1)
end

-- One step of a writer: any operation on any key.
local function step(cache, shared)
    local number = math.random(KEYS)
    local key = "k" .. number
    local choice = math.random(8)
    if choice == 1 then
        shared:set("d" .. number, value_of("d" .. number, math.random(1000)), math.random(3), number)
    elseif choice == 2 then
        shared:incr("n" .. number, 1, 0, 60)
    elseif choice == 3 then
        shared:lpush("q" .. number % 5, value_of("q" .. number % 5, 1))
        if math.random(2) == 1 then
            shared:rpop("q" .. number % 5)
        end
    elseif choice == 4 then
        cache:fill(key, function() return value_of(key, math.random(1000)) end, { ttl = 1, wait = 0.01 })
    elseif choice == 5 then
        local writer = cache:writer(key)
        if writer then
            writer:write(value_of(key, math.random(1000)))
            writer:commit()
        end
    else
        cache:put(key, value_of(key, math.random(1000)), { tags = "t" .. number % 7 })
    end
end

-- Reads every key in each way, and counts those that are there.
local function read_all(cache, shared)
    local found = 0
    for number = 1, KEYS do
        local key, name = "k" .. number, "d" .. number
        local value = cache:get(key)
        if value then
            found = found + 1
            assert(is_right(key, value), key)
        end
        local hit = cache:hold(key)
        if hit then
            assert(is_right(key, hit:bytes()), key)
            hit:release()
        end
        local text, flags = shared:get_stale(name)
        assert(not text or is_right(name, text) and flags == number, name)
        local count, err = shared:get("n" .. number)
        assert(not err and (not count or count >= 1 and count == math.floor(count)), "n" .. number)
    end
    for number = 0, 4 do
        local name = "q" .. number
        local element = shared:lpop(name)
        assert(not element or is_right(name, element), name)
    end
    return found
end

TestStorm = {}

function TestStorm.test_no_death_leaves_a_wrong_byte()
    stage.with_volume(function(path)
        local options = { size = "2M" }
        local cache = assert(eyewall.open(path, options))
        local shared = assert(dict.open(path, options))
        local children = {}
        local function start(seed)
            return stage.fork(function()
                math.randomseed(seed)
                local own, other = cache, shared
                if seed % 2 == 0 then
                    own, other = assert(eyewall.open(path)), assert(dict.open(path))
                end
                while true do
                    step(own, other)
                end
            end)
        end
        for number = 1, 3 do
            children[number] = start(number)
        end
        local is_done, failure = pcall(function()
            for round = 1, ROUNDS do
                local puts = cache:stats().puts
                -- The writers go on after each death.
                stage.wait_for(function() return cache:stats().puts > puts + 100 end)
                read_all(cache, shared)
                local victim = round % 3 + 1
                lu.assertEquals(stage.kill(children[victim]), stage.SIGKILL)
                children[victim] = start(round + 3)
            end
        end)
        for _, child in pairs(children) do
            stage.kill(child)
        end
        if not is_done then
            error(failure, 0)
        end
        lu.assertTrue(read_all(cache, shared) > 0)
        for number = 1, KEYS do
            lu.assertTrue(cache:put("k" .. number, value_of("k" .. number, number)) ~= nil)
        end
        lu.assertTrue(read_all(cache, shared) > 0)
    end)
end

function TestStorm.test_one_of_many_processes_makes_each_value()
    stage.with_volume(function(path)
        local cache = assert(eyewall.open(path, { size = "4M", lock_deadline = 60 }))
        local children = {}
        for number = 1, 4 do
            children[number] = stage.fork(function()
                for round = 1, 100 do
                    local value = cache:fill("page" .. round, function()
                        cache:increment("made" .. round, 1)
                        return "page " .. round
                    end, { wait = 60 })
                    assert(value == "page " .. round)
                end
                return true
            end)
        end
        for _, child in ipairs(children) do
            lu.assertEquals(stage.wait(child), 0)
        end
        for round = 1, 100 do
            lu.assertEquals(cache:increment("made" .. round, 0), 1)
        end
    end)
end

function TestStorm.test_no_increment_of_a_dictionary_is_lost()
    stage.with_volume(function(path)
        local shared = assert(dict.open(path, { size = "4M", lock_deadline = 60 }))
        local children = {}
        for number = 1, 4 do
            children[number] = stage.fork(function()
                for _ = 1, 500 do
                    assert(shared:incr("whole", 1, 0))
                    assert(shared:incr("any", 0.5, 0))
                    assert(shared:rpush("list", number))
                end
                return true
            end)
        end
        for _, child in ipairs(children) do
            lu.assertEquals(stage.wait(child), 0)
        end
        lu.assertEquals({ shared:get "whole", (shared:get "any"), (shared:llen "list") }, { 2000, 1000, 2000 })
    end)
end

stage.run()
