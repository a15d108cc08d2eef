-- Options of puts and of opening, from Lua tables to structs. The structs are allocated once: no call into the library
-- yields, so no two coroutines use one at a time. The caller keeps the strings of the table alive until its call.

local ffi = require "ffi"
require "resty.eyewall.library"

local _M = { _VERSION = "0.1.0" }

local TAGS_MAX = 32

local put_options = ffi.new("eyewall_put_options")
local touch_options = ffi.new("eyewall_touch_options")
local tags_of_put = ffi.new("eyewall_bytes[?]", TAGS_MAX)

-- Seconds as milliseconds; at least one, since 0 means forever to the library.
local function milliseconds(seconds, name)
    if type(seconds) ~= "number" or seconds <= 0 then
        error("bad option " .. name .. ": seconds above 0 expected, got " .. tostring(seconds), 0)
    end
    if seconds == math.huge then
        return 0
    end
    return math.max(1, math.floor(seconds * 1000))
end

local function set_tags(tags)
    if type(tags) == "string" then
        tags = { tags }
    end
    local count = #tags
    if count > TAGS_MAX then
        error("bad option tags: an entry has at most " .. TAGS_MAX .. " tags, got " .. count, 0)
    end
    for number = 1, count do
        local tag = tags[number]
        if type(tag) ~= "string" then
            error("bad option tags: strings expected, got " .. type(tag), 0)
        end
        tags_of_put[number - 1].data = tag
        tags_of_put[number - 1].length = #tag
    end
    put_options.tags = tags_of_put
    put_options.tags_count = count
end

-- The struct of `{ ttl =, stale =, metadata =, tags =, begun_in = }`, or nil for none. The next call overwrites it.
function _M.of_put(given)
    if not given then
        return nil
    end
    put_options.ttl_ms = given.ttl and milliseconds(given.ttl, "ttl") or 0
    put_options.stale_ms = given.stale and milliseconds(given.stale, "stale") or 0
    local metadata = given.metadata
    if metadata ~= nil and type(metadata) ~= "string" then
        error("bad option metadata: string expected, got " .. type(metadata), 0)
    end
    put_options.metadata = metadata
    put_options.metadata_length = metadata and #metadata or 0
    put_options.tags_count = 0
    if given.tags then
        set_tags(given.tags)
    end
    put_options.begun_in = given.begun_in
    return put_options
end

function _M.of_touch(given)
    touch_options.set_times = given.ttl ~= nil
    touch_options.ttl_ms = given.ttl and milliseconds(given.ttl, "ttl") or 0
    touch_options.stale_ms = given.stale and milliseconds(given.stale, "stale") or 0
    touch_options.set_metadata = given.metadata ~= nil
    touch_options.metadata = given.metadata
    touch_options.metadata_length = given.metadata and #given.metadata or 0
    touch_options.if_serial = given.serial ~= nil
    touch_options.serial = given.serial or 0
    return touch_options
end

local units = { [""] = 1, K = 2 ^ 10, M = 2 ^ 20, G = 2 ^ 30, T = 2 ^ 40 }

-- Bytes, from a number or from text as in "64M".
local function size_of(given, name)
    if type(given) == "number" and given >= 0 then
        return given
    end
    local number, unit = tostring(given):match("^(%d+)%s*([KMGTkmgt]?)$")
    if not number then
        error("bad option " .. name .. ": bytes expected, as 67108864 or \"64M\", got " .. tostring(given), 0)
    end
    return tonumber(number) * units[unit:upper()]
end

local known_when_opening = {
    size = true, entry_bytes_max = true, entry_size_hint = true, mode = true, group = true, lock_deadline = true,
    tier = true, tier_folder = true,
}

-- The struct of eyewall_open; README.md lists the options.
function _M.of_open(given, flags)
    local options = ffi.new("eyewall_open_options")
    local bits = 0
    for name, value in pairs(given) do
        if flags[name] then
            bits = bits + (value and flags[name] or 0)
        elseif not known_when_opening[name] then
            error("resty.eyewall has no option " .. tostring(name), 0)
        end
    end
    options.size = given.size and size_of(given.size, "size") or 0
    options.entry_bytes_max = given.entry_bytes_max and size_of(given.entry_bytes_max, "entry_bytes_max") or 0
    options.entry_size_hint = given.entry_size_hint and size_of(given.entry_size_hint, "entry_size_hint") or 0
    options.mode = given.mode or 0
    if given.group then
        options.group = given.group
        bits = bits + 32 -- EYEWALL_SET_GROUP
    end
    options.lock_deadline_ms = given.lock_deadline and milliseconds(given.lock_deadline, "lock_deadline") or 0
    options.tier_bytes = given.tier and size_of(given.tier, "tier") or 0
    options.tier_folder = given.tier_folder
    options.flags = bits
    return options
end

return _M
