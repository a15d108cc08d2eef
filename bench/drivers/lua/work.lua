-- The procedure `modules` in nginx: the work on a store, and its time. modules.py writes keys and values to files, and
-- reads the figures from the body of the response.

local bit = require "bit"
local cjson = require "cjson"
local ffi = require "ffi"

ffi.cdef [[
struct driver_time { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct driver_time *time);
]]

local _M = {}

local CHECKED = 64
-- The streams of random numbers of the gets, and of the mix.
local GETS, MIX = 3, 4

local time = ffi.new "struct driver_time"

local function now()
    ffi.C.clock_gettime(1, time) -- CLOCK_MONOTONIC
    return tonumber(time.seconds) + tonumber(time.nanoseconds) / 1e9
end

-- The product of two numbers of 32 bits, modulo 2^32, in doubles.
local function product(a, b)
    local low = a % 65536
    return (low * b + (a - low) / 65536 * b % 65536 * 65536) % 2 ^ 32
end

local function unsigned(number)
    return number % 2 ^ 32
end

-- The finaliser of MurmurHash3.
local function mixed(x)
    x = unsigned(bit.bxor(x, bit.rshift(x, 16)))
    x = product(x, 0x85ebca6b)
    x = unsigned(bit.bxor(x, bit.rshift(x, 13)))
    x = product(x, 0xc2b2ae35)
    return unsigned(bit.bxor(x, bit.rshift(x, 16)))
end

-- below(limit) of a stream (xorshift32).
local function stream(seed, number)
    local state = mixed((seed + number) % 2 ^ 32)
    state = state == 0 and 1 or state
    return function(limit)
        state = bit.bxor(state, bit.lshift(state, 13))
        state = bit.bxor(state, bit.rshift(state, 17))
        state = bit.bxor(state, bit.lshift(state, 5))
        return math.floor(unsigned(state) * limit / 2 ^ 32)
    end
end

-- The key of each get, by index.
function _M.gets(settings, stored)
    local below, indices = stream(settings.seed, GETS), {}
    for number = 1, settings.operations do
        if below(100) < settings.stored_percent then
            indices[number] = below(stored)
        else
            indices[number] = settings.keys + below(settings.keys)
        end
    end
    return indices
end

-- The same for gets and sets; a set of key i is -1 - i.
function _M.mix(settings, stored)
    local below, indices = stream(settings.seed, MIX), {}
    for number = 1, settings.operations do
        if below(100) < settings.set_percent then
            indices[number] = -1 - below(stored)
        else
            indices[number] = below(stored)
        end
    end
    return indices
end

local function repeated(once, rounds)
    local whole = {}
    for round = 0, rounds - 1 do
        for number = 1, #once do
            whole[round * #once + number] = once[number]
        end
    end
    return whole
end

-- Does `count` operations by `work`, or fewer if the time is up first. Returns their number and their seconds.
local function timed(count, limit, work)
    local done, block = 0, 1
    local start = now()
    local present = start
    while done < count and present - start < limit do
        local first, before = done, present
        done = math.min(done + block, count)
        work(first + 1, done)
        present = now()
        if present - before < limit / 50 then
            block = block * 2
        end
    end
    return done, present - start
end

local function is_equal(one, other)
    if type(one) ~= "table" then
        return one == other
    end
    for name, value in pairs(one) do
        if other[name] ~= value then
            return false
        end
    end
    return true
end

local function check(get, keys, values, asked, stored)
    for number = 1, math.min(CHECKED, #asked) do
        local index = asked[number]
        local got = get(keys[index + 1])
        if got ~= nil and index >= stored then
            error("it has a value for a key that was never stored", 0)
        end
        if got ~= nil and not is_equal(values[index % 256 + 1], got) then
            error("it gave another value than the one that was stored", 0)
        end
    end
end

-- The figures of one repetition, by measure.
local function figures(set, get, keys, values, settings)
    local found, count = {}, settings.keys
    local done, seconds = timed(count * settings.rounds, settings.seconds, function(first, last)
        for number = first, last do
            local index = (number - 1) % count
            set(keys[index + 1], values[index % 256 + 1])
        end
    end)
    local stored = math.min(done, count)
    found.set, found.stored = done / seconds, stored

    local asked = repeated(_M.gets(settings, stored), settings.rounds)
    local hits = 0
    done, seconds = timed(#asked, settings.seconds, function(first, last)
        for number = first, last do
            if get(keys[asked[number] + 1]) ~= nil then
                hits = hits + 1
            end
        end
    end)
    found.get, found.get_hits = done / seconds, 100 * hits / done
    check(get, keys, values, asked, stored)

    local steps = repeated(_M.mix(settings, stored), settings.rounds)
    local gets = 0
    hits = 0
    done, seconds = timed(#steps, settings.seconds, function(first, last)
        for number = first, last do
            local index = steps[number]
            if index < 0 then
                index = -1 - index
                set(keys[index + 1], values[index % 256 + 1])
            else
                gets = gets + 1
                if get(keys[index + 1]) ~= nil then
                    hits = hits + 1
                end
            end
        end
    end)
    found.mix = done / seconds
    if gets > 0 then
        found.mix_hits = 100 * hits / gets
    end
    return found
end

-- set(key, value) and get(key) of a store, which raise errors.
local function opened(store, expiry, is_structured)
    if store == "table (Lua)" then
        local all = {}
        return function(key, value) all[key] = value end, function(key) return all[key] end
    end
    local dict = ngx.shared[store == "lua_shared_dict" and "theirs" or "ours"]
    local encode, decode = cjson.encode, cjson.decode
    local function set(key, value)
        local is_stored, failure = dict:set(key, is_structured and encode(value) or value, expiry)
        if not is_stored then
            error(failure, 0)
        end
    end
    local function get(key)
        local value = dict:get(key)
        if value ~= nil and is_structured then
            return decode(value)
        end
        return value
    end
    return set, get
end

-- Values in a file, each after its length.
local function read_values(path, is_structured)
    local file, values = assert(io.open(path, "rb")), {}
    for length in function() return file:read "*n" end do
        file:read(1)
        local value = file:read(length)
        values[#values + 1] = is_structured and cjson.decode(value) or value
    end
    file:close()
    return values
end

-- Measures the store of request.json in this folder; returns JSON.
function _M.measure(folder)
    local file = assert(io.open(folder .. "/request.json"))
    local request = cjson.decode(file:read "*a")
    file:close()
    local values = read_values(folder .. "/values", request.is_structured)
    local set, get = opened(request.store, request.expiry or 0, request.is_structured)
    local is_done, found = pcall(figures, set, get, request.keys, values, request.settings)
    return cjson.encode(is_done and { figures = found } or { failure = tostring(found) })
end

return _M
