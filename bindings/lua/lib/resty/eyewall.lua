-- Eyewall for LuaJIT and OpenResty: one memory-mapped cache for all processes of a machine.
--
--     local eyewall = require "resty.eyewall"
--     local cache = assert(eyewall.open("/dev/shm/pages", { size = "64M" }))
--     cache:put("/news", "<h1>News</h1>", { ttl = 60, tags = { "news" } })
--     local page, err = cache:get("/news")
--
-- Calls return nil after a miss, and nil, a message and the error's name after an error. Wrong arguments raise an
-- error. README.md documents every call.

local ffi = require "ffi"
local library = require "resty.eyewall.library"
local options = require "resty.eyewall.options"
local hits = require "resty.eyewall.hit"
local fills = require "resty.eyewall.fill"
local claims = require "resty.eyewall.claim"

local C = library.C
local OK, MISS, TOO_SMALL = library.OK, library.MISS, library.TOO_SMALL
local failure = library.failure
local ffi_new = ffi.new
local ffi_string = ffi.string
local tonumber = tonumber
local tostring = tostring
local type = type

local _M = { _VERSION = library._VERSION }

-- Larger values are read where they lie: a copy to this buffer first would cost more than the calls that it spares.
local BUFFER_BYTES = 64 * 1024
local FOREVER = 0xffffffffffffffffULL
local PURGE_HARD, PURGE_SOFT = 0, 1

-- Memory for results. Nothing yields between a call and the reading of its result.
local buffer = ffi_new("char[?]", BUFFER_BYTES)
local copy = ffi_new("eyewall_copy", { value = buffer, value_capacity = BUFFER_BYTES })
local metadata_buffer = ffi_new("char[?]", 65535)
copy.metadata, copy.metadata_capacity = metadata_buffer, 65535
local scratch = ffi_new("eyewall_hit")
local sum = ffi_new("int64_t[1]")
local count = ffi_new("uint64_t[1]")
local serial_out = ffi_new("uint64_t[1]")
local counter = ffi_new("eyewall_counter_options")
local info = ffi_new("eyewall_info")
local stats = ffi_new("eyewall_stats")

local Cache = {}
Cache.__index = Cache

-- Opens the volume at a path, and creates it if there is none. Returns the cache, or nil, an error and its name.
function _M.open(path, given)
    local opened = ffi_new("eyewall_cache *[1]")
    local status = C.eyewall_open(path, options.of_open(given or {}, library.flags), opened)
    if status ~= OK then
        return failure(status)
    end
    local anchor, own = library.anchor(opened[0])
    return setmetatable({ path = path, pointer = opened[0], anchor = anchor, own = own }, Cache)
end

function _M.version()
    return ffi_string(C.eyewall_version())
end

local function nothing() end

-- Closes the cache, when the last hit, flight, claim and writer of it have ended. The collector does so, too.
function Cache:close()
    self.pointer = nil
    self.own:finish(nothing)
end

-- The value of a large entry, which is held while it is copied.
local function get_large(self, key)
    local status = C.eyewall_peek(self.pointer, key, #key, scratch)
    if status ~= OK then
        if status == MISS then
            return nil
        end
        return failure(status)
    end
    local value = ffi_string(scratch.value, scratch.value_length)
    status = C.eyewall_hit_check(scratch)
    C.eyewall_hit_release(scratch)
    if status ~= OK then
        return failure(status)
    end
    return value
end

-- The value of a valid entry as a string.
function Cache:get(key)
    if type(key) ~= "string" then
        key = tostring(key)
    end
    local status = C.eyewall_get_entry(self.pointer, key, #key, copy)
    if status == OK then
        return ffi_string(buffer, copy.value_length)
    end
    if status == MISS then
        return nil
    end
    if status == TOO_SMALL then
        return get_large(self, key)
    end
    return failure(status)
end

-- Holds the entry of a key, fresh or stale or negative (`hit.state`), without copying it. Release the hit.
function Cache:hold(key)
    key = tostring(key)
    local object = ffi_new("eyewall_hit")
    local status = C.eyewall_lookup(self.pointer, key, #key, object)
    if status == MISS then
        return nil
    end
    if status < 0 then
        return failure(status)
    end
    return hits.new(self.anchor, object, status)
end

-- A table with an entry's state, value, metadata, tags, serial and times.
function Cache:lookup(key)
    local hit, message, name = self:hold(key)
    if not hit then
        return nil, message, name
    end
    local entry = hit:info()
    entry.state, entry.value, entry.metadata, entry.tags = hit.state, hit:bytes(), hit:metadata(), hit:tags()
    local is_intact, what, code = hit:check()
    hit:release()
    if not is_intact then
        return nil, what, code
    end
    return entry
end

function Cache:contains(key)
    key = tostring(key)
    local status = C.eyewall_contains(self.pointer, key, #key)
    if status < 0 then
        return failure(status)
    end
    return status == OK
end

-- The remaining time to live in seconds; math.huge if the entry doesn't expire; nil if there is no valid entry.
function Cache:ttl(key)
    key = tostring(key)
    local status = C.eyewall_peek(self.pointer, key, #key, scratch)
    if status ~= OK then
        if status == MISS then
            return nil
        end
        return failure(status)
    end
    status = C.eyewall_hit_info(scratch, info)
    C.eyewall_hit_release(scratch)
    if status ~= OK then
        return failure(status)
    end
    return info.ttl_left_ms == FOREVER and math.huge or tonumber(info.ttl_left_ms) / 1000
end

-- The serial of what was stored; false if a condition didn't hold; nil, an error and its name.
local function stored(status)
    if status < 0 then
        return failure(status)
    end
    return status == OK and serial_out[0] + 0ULL
end

function Cache:put(key, value, given)
    key, value = tostring(key), tostring(value)
    return stored(C.eyewall_put(self.pointer, key, #key, value, #value, options.of_put(given), serial_out))
end

-- Stores a negative entry: there is nothing, for this reason, a number below 65,536.
function Cache:put_negative(key, reason, given)
    key = tostring(key)
    return stored(C.eyewall_put_negative(self.pointer, key, #key, reason, options.of_put(given), serial_out))
end

-- Stores the value if there is no valid entry; false if there is one.
function Cache:add(key, value, given)
    key, value = tostring(key), tostring(value)
    return stored(C.eyewall_add(self.pointer, key, #key, value, #value, options.of_put(given), serial_out))
end

-- Stores the value if the entry still has this serial, which `lookup` and puts return; false if not.
function Cache:replace(key, serial, value, given)
    key, value = tostring(key), tostring(value)
    return stored(C.eyewall_replace_if(self.pointer, key, #key, serial, value, #value, options.of_put(given), serial_out))
end

-- true or false, as `yes` is the answer or not; nil, an error and its name.
local function answered(status, yes)
    if status < 0 then
        return failure(status)
    end
    return status == yes
end

-- Removes an entry; false if there was none, or none with the serial.
function Cache:remove(key, serial)
    key = tostring(key)
    if serial then
        return answered(C.eyewall_remove_if(self.pointer, key, #key, serial), OK)
    end
    return answered(C.eyewall_remove(self.pointer, key, #key), OK)
end

-- Gives an entry new times or metadata: `{ ttl =, stale =, metadata =, serial = }`. false if there is no such entry.
function Cache:touch(key, given)
    key = tostring(key)
    return answered(C.eyewall_touch(self.pointer, key, #key, options.of_touch(given or {})), OK)
end

-- Adds to a counter of whole numbers, and returns the sum. `{ start =, ttl =, tags = }` are for a new counter.
function Cache:increment(key, by, given)
    key = tostring(key)
    counter.start = given and given.start or 0
    counter.put = options.of_put(given)
    local status = C.eyewall_increment(self.pointer, key, #key, by or 1, counter, sum)
    if status < 0 then
        return failure(status)
    end
    return tonumber(sum[0])
end

function Cache:fill(key, make, given)
    return fills.fill(self, tostring(key), make, given)
end

-- For callers that can't pass a function: returns a hit, or nil and a flight, or nil, nil and the reason of a negative
-- entry, or nil, nil, nil, an error and its name.
function Cache:begin_fill(key, given)
    return fills.begin(self, tostring(key), given)
end

function Cache:claim(key)
    return claims.claim(self, tostring(key))
end

-- Begins a value that is written piece by piece.
function Cache:writer(key, given, length)
    return claims.writer(self, tostring(key), given, length)
end

-- Sends the value of a key to the client of this request, from the volume, in pieces. false: there is no valid entry.
function Cache:send(key, piece_bytes)
    local hit, message, name = self:hold(key)
    if not hit or hit.state ~= "fresh" then
        if hit then
            hit:release()
        end
        if message then
            return nil, message, name
        end
        return false
    end
    local is_sent, why, what = hit:send(piece_bytes)
    hit:release()
    if not is_sent then
        return nil, why, what
    end
    return true
end

local function mode(given)
    return given and given.soft and PURGE_SOFT or PURGE_HARD
end

-- Purges by tag, by prefix or everything; `{ soft = true }` makes the entries stale instead.
function Cache:purge_tag(tag, given)
    return answered(C.eyewall_purge_tag(self.pointer, tag, #tag, mode(given)), OK)
end

function Cache:purge_prefix(prefix, given)
    return answered(C.eyewall_purge_prefix(self.pointer, prefix, #prefix, mode(given)), OK)
end

function Cache:purge_all(given)
    return answered(C.eyewall_purge_all(self.pointer, mode(given)), OK)
end

-- The present moment, for the option `begun_in`: every purge after it applies to an entry that is put with it.
function Cache:now()
    local epoch = ffi_new("eyewall_epoch")
    local status = C.eyewall_now(self.pointer, epoch)
    if status < 0 then
        return failure(status)
    end
    return epoch
end

-- Removes every entry, and returns how many there were.
function Cache:clear()
    local status = C.eyewall_clear(self.pointer, count)
    if status < 0 then
        return failure(status)
    end
    return tonumber(count[0])
end

-- An iterator over the keys of the valid entries, in no order; with `all`, of stale and negative ones, too. Also a function
-- that ends the iterator, for loops that don't run to its end; the collector ends it late.
function Cache:keys(all)
    local begun = ffi_new("eyewall_iter *[1]")
    local status = C.eyewall_iter_begin(self.pointer, all or false, begun)
    if status < 0 then
        return failure(status)
    end
    local iteration = self.anchor:own(begun[0], C.eyewall_iter_end)
    return function()
        local pointer = iteration:pointer()
        if pointer == nil then
            return nil
        end
        if C.eyewall_iter_next(pointer, scratch) ~= OK then
            iteration:finish(C.eyewall_iter_end)
            return nil
        end
        local key = C.eyewall_hit_key(scratch)
        local name = ffi_string(key.data, key.length)
        C.eyewall_hit_release(scratch)
        return name
    end, function()
        iteration:finish(C.eyewall_iter_end)
    end
end

local names_of_stats = {
    "size_bytes", "data_bytes", "overhead_bytes", "stripes", "entry_bytes_max", "entries", "live_bytes", "free_bytes",
    "filler_bytes", "dead_bytes", "untiled_bytes", "index_slots", "index_live", "index_ghosts", "hits", "misses",
    "copies", "puts", "removes", "evictions_cold", "evictions_expired", "evictions_index", "evictions_damaged",
    "evictions_purged", "promotions", "reinsertions", "moved", "bytes_written", "bytes_copied", "pins", "processes",
    "threads", "repairs", "resets", "pinned_refusals", "busy", "eviction_age_ms", "purges", "purge_overflows",
    "attachments", "unclean_drops", "tier_hits", "tier_size_bytes", "index_slots_wanted", "index_steps",
}

-- The statistics of the volume as a table of numbers. The call scans the index.
function Cache:stats()
    local status = C.eyewall_stats_read(self.pointer, stats, ffi.sizeof(stats))
    if status < 0 then
        return failure(status)
    end
    local read = {}
    for _, name in ipairs(names_of_stats) do
        read[name] = tonumber(stats[name])
    end
    return read
end

-- Size of the volume in bytes.
function Cache:size()
    return tonumber(C.eyewall_size(self.pointer))
end

-- The largest entry in bytes: 48, plus key, metadata and value.
function Cache:entry_bytes_max()
    return tonumber(C.eyewall_entry_bytes_max(self.pointer))
end

-- Removes expired and purged entries now, and returns how many there were. It is never necessary, and waits for storage.
function Cache:sweep()
    local status = C.eyewall_sweep(self.pointer, count)
    if status < 0 then
        return failure(status)
    end
    return tonumber(count[0])
end

-- Waits until everything that was stored is on storage.
function Cache:sync()
    return answered(C.eyewall_sync(self.pointer), OK)
end

return _M
