-- The interface of ngx.shared.DICT over a volume: the same methods, results and error messages as in lua-nginx-module.
--
--     init_by_lua_block {
--         ngx.shared.pages = assert(require("resty.eyewall.dict").open("/dev/shm/pages", { size = "64M" }))
--     }
--
-- README.md lists the differences.

local ffi = require "ffi"
local library = require "resty.eyewall.library"
local eyewall = require "resty.eyewall"
local values = require "resty.eyewall.dict.values"
local lists = require "resty.eyewall.dict.lists"

local C = library.C
local OK, MISS, STALE, UNMET, TOO_SMALL = library.OK, library.MISS, library.STALE, library.UNMET, library.TOO_SMALL
local decode, encode, is_whole = values.decode, values.encode, values.is_whole
local ffi_new = ffi.new
local ffi_string = ffi.string
local error = error
local floor = math.floor
local min = math.min
local tonumber = tonumber
local tostring = tostring
local type = type

local _M = { _VERSION = library._VERSION }

local KEY_BYTES_MAX = 65535
local BUFFER_BYTES = 64 * 1024
local STALE_SECONDS = 60
local KEPT_FREE_BYTES = 256 * 1024
local FOREVER = 0xffffffffffffffffULL
-- What an entry takes besides its key and value, generously.
local OVERHEAD_BYTES = 128

-- Memory for results and options. Nothing yields between a call and the reading of its result.
local buffer = ffi_new("char[?]", BUFFER_BYTES)
local metadata_buffer = ffi_new("uint64_t[8192]")
local copy = ffi_new("eyewall_copy", {
    value = buffer, value_capacity = BUFFER_BYTES, metadata = metadata_buffer, metadata_capacity = 65536,
})
local hit = ffi_new("eyewall_hit")
local info = ffi_new("eyewall_info")
local put_options = ffi_new("eyewall_put_options")
local touch_options = ffi_new("eyewall_touch_options", { set_times = true })
local counter = ffi_new("eyewall_counter_options", { put = put_options })
local sum = ffi_new("int64_t[1]")
local written = ffi_new("uint64_t[1]")

local Dict = {}
Dict.__index = Dict

-- Opens the volume at a path, and creates it if there is none. `options` are those of resty.eyewall, and `stale`: for
-- how many seconds get_stale finds a value after its time.
function _M.open(path, given)
    local opening, stale = {}, STALE_SECONDS
    for name, value in pairs(given or {}) do
        if name == "stale" then
            stale = value
        else
            opening[name] = value
        end
    end
    local cache, message, name = eyewall.open(path, opening)
    if not cache then
        return nil, message, name
    end
    return setmetatable({ cache = cache, pointer = cache.pointer, stale_ms = floor(stale * 1000), room = 0 }, Dict)
end

function Dict:close()
    self.pointer = nil
    self.cache:close()
end

-- The key as a string; or nil and an error.
local function checked(key)
    if key == nil then
        return nil, "nil key"
    end
    if type(key) ~= "string" then
        key = tostring(key)
    end
    if #key == 0 then
        return nil, "empty key"
    end
    if #key > KEY_BYTES_MAX then
        return nil, "key too long"
    end
    return key
end

local function message_of(status)
    if status == library.PINNED or status == library.ENTRY_TOO_LARGE then
        return "no memory"
    end
    local _, message = library.failure(status)
    return message
end

-- Reads the entry that `hit` holds, and releases it. nil and an error if its bytes were lost, or if it is a list.
local function read_held()
    local metadata = C.eyewall_hit_metadata(hit)
    local value, flags = decode(hit.value, hit.value_length, metadata.data, tonumber(metadata.length))
    local status = C.eyewall_hit_check(hit)
    C.eyewall_hit_release(hit)
    if status ~= OK then
        return nil, message_of(status)
    end
    return value, flags
end

local function get_large(self, key)
    local status = C.eyewall_peek(self.pointer, key, #key, hit)
    if status == OK then
        return read_held()
    end
    return nil, status ~= MISS and message_of(status) or nil
end

function Dict:get(key)
    if type(key) ~= "string" or #key == 0 then
        local err
        key, err = checked(key)
        if not key then
            return nil, err
        end
    end
    local value, flags
    local status = C.eyewall_get_entry(self.pointer, key, #key, copy)
    if status == OK then
        if copy.metadata_length == 0 then
            return ffi_string(buffer, copy.value_length)
        end
        value, flags = decode(buffer, tonumber(copy.value_length), metadata_buffer, tonumber(copy.metadata_length))
    elseif status == MISS then
        return nil
    elseif status == TOO_SMALL then
        value, flags = get_large(self, key)
    elseif #key > KEY_BYTES_MAX then
        return nil, "key too long"
    else
        return nil, message_of(status)
    end
    if flags == 0 then
        return value
    end
    return value, flags
end

function Dict:get_stale(key)
    local err
    key, err = checked(key)
    if not key then
        return nil, err
    end
    local status = C.eyewall_lookup(self.pointer, key, #key, hit)
    if status ~= OK and status ~= STALE then
        C.eyewall_hit_release(hit)
        return nil, status < 0 and message_of(status) or nil
    end
    local value, flags = read_held()
    if value == nil then
        return nil, flags
    end
    return value, flags ~= 0 and flags or nil, status == STALE
end

-- Sets put_options for a value with this metadata.
local function set_options(self, exptime, metadata, metadata_length)
    local ttl_ms = floor(exptime * 1000)
    put_options.ttl_ms = ttl_ms
    put_options.stale_ms = ttl_ms > 0 and self.stale_ms or 0
    put_options.metadata = metadata
    put_options.metadata_length = metadata_length
end

-- Whether a value of this length goes in without an eviction, as far as the volume's totals tell.
local function has_room(self, bytes)
    C.eyewall_written(self.pointer, nil, written)
    local needed = tonumber(written[0]) + bytes + OVERHEAD_BYTES
    if needed > self.room then
        -- So many bytes may be written in all before something is evicted. A full volume keeps some bytes free.
        local stats = self.cache:stats()
        local kept = min(KEPT_FREE_BYTES * stats.stripes, stats.data_bytes / 16)
        self.room = tonumber(written[0]) + stats.free_bytes - kept
    end
    return needed <= self.room
end

local function put(self, key, bytes, length)
    return C.eyewall_put(self.pointer, key, #key, bytes, length, put_options, nil)
end

local function add(self, key, bytes, length)
    return C.eyewall_add(self.pointer, key, #key, bytes, length, put_options, nil)
end

-- Replaces the valid entry, whichever it is.
local function replace(self, key, bytes, length)
    while true do
        local status = C.eyewall_peek(self.pointer, key, #key, hit)
        if status ~= OK then
            return status
        end
        C.eyewall_hit_info(hit, info)
        C.eyewall_hit_release(hit)
        status = C.eyewall_replace_if(self.pointer, key, #key, info.serial, bytes, length, put_options, nil)
        if status ~= UNMET then
            return status
        end
    end
end

local function remove(self, key)
    local status = C.eyewall_remove(self.pointer, key, #key)
    if status < 0 then
        return false, message_of(status), false
    end
    return true, nil, false
end

-- Stores by `change`, one of put, add and replace; `refusal` is the message if its condition doesn't hold.
local function store(self, change, refusal, is_safe, key, value, exptime, flags)
    if not exptime then
        exptime = 0
    elseif exptime < 0 then
        error('bad "exptime" argument', 3)
    end
    local err
    key, err = checked(key)
    if not key then
        return nil, err
    end
    if value == nil then
        if refusal then
            return false, "attempt to add or replace nil values", false
        end
        return remove(self, key)
    end
    local bytes, length, metadata, metadata_length = encode(value, flags or 0)
    if not bytes then
        return nil, "bad value type"
    end
    if is_safe and not has_room(self, #key + length) then
        return false, "no memory", false
    end
    set_options(self, exptime, metadata, metadata_length)
    local status = change(self, key, bytes, length)
    if status == OK then
        return true, nil, false
    end
    if status > 0 then
        return false, refusal, false
    end
    return false, message_of(status), false
end

function Dict:set(key, value, exptime, flags)
    return store(self, put, nil, false, key, value, exptime, flags)
end

function Dict:safe_set(key, value, exptime, flags)
    return store(self, put, nil, true, key, value, exptime, flags)
end

function Dict:add(key, value, exptime, flags)
    return store(self, add, "exists", false, key, value, exptime, flags)
end

function Dict:safe_add(key, value, exptime, flags)
    return store(self, add, "exists", true, key, value, exptime, flags)
end

function Dict:replace(key, value, exptime, flags)
    return store(self, replace, "not found", false, key, value, exptime, flags)
end

function Dict:delete(key)
    return self:set(key, nil)
end

-- Sets put_options so that an entry keeps its remaining time, which `info` has.
local function keep_times()
    local left = info.ttl_left_ms
    if left == FOREVER then
        put_options.ttl_ms, put_options.stale_ms = 0, 0
        return
    end
    put_options.ttl_ms = left > 0ULL and left or 1
    put_options.stale_ms = info.usable_left_ms - left
end

-- Changes a valid entry, or creates it, by `change(value, flags, is_list)`, which gets nil if there is none, and the
-- bytes of a list. It returns the new bytes, their length, the metadata with its length, and the result; or nil, and the
-- results of this function. It runs again if another process has changed the entry meanwhile. `exptime` is for a new
-- entry.
local function update(self, key, exptime, change)
    while true do
        local status = C.eyewall_get(self.pointer, key, #key, hit)
        local value, flags, is_there, is_list = nil, 0, status == OK, false
        if is_there then
            C.eyewall_hit_info(hit, info)
            local metadata = C.eyewall_hit_metadata(hit)
            value, flags = decode(hit.value, hit.value_length, metadata.data, tonumber(metadata.length))
            if value == nil then
                value, flags, is_list = ffi_string(hit.value, hit.value_length), 0, true
            end
            status = C.eyewall_hit_check(hit)
            C.eyewall_hit_release(hit)
        end
        if status < 0 then
            return nil, message_of(status)
        end
        local bytes, length, metadata, metadata_length, result = change(value, flags, is_list)
        if not bytes then
            return length, metadata
        end
        if is_there then
            put_options.metadata, put_options.metadata_length = metadata, metadata_length
            keep_times()
            status = C.eyewall_replace_if(self.pointer, key, #key, info.serial, bytes, length, put_options, nil)
        else
            set_options(self, exptime, metadata, metadata_length)
            status = add(self, key, bytes, length)
        end
        if status == OK then
            return result, nil
        end
        if status ~= UNMET then
            return nil, message_of(status)
        end
    end
end

-- Any number, and any present value.
local function incr_any(self, key, value, init, init_ttl)
    return update(self, key, init_ttl, function(present, flags)
        if present == nil then
            if not init then
                return nil, nil, "not found"
            end
            present, flags = init, 0
        elseif type(present) ~= "number" then
            return nil, nil, "not a number"
        end
        local result = present + value
        local bytes, length, metadata, metadata_length = encode(result, flags)
        return bytes, length, metadata, metadata_length, result
    end)
end

-- One atomic call. nil: the present value is no whole number.
local function incr_whole(self, key, value, init, init_ttl)
    set_options(self, init_ttl, values.form_of_whole())
    counter.start = init
    local status = C.eyewall_increment(self.pointer, key, #key, value, counter, sum)
    if status == OK then
        return tonumber(sum[0])
    end
    if status == library.NOT_A_COUNTER then
        return nil
    end
    return nil, message_of(status)
end

-- `given` as a number; it is an error of the caller if it is none.
local function numeric(given, name)
    local number = tonumber(given)
    if not number then
        error("bad " .. name .. " arg: number expected, got " .. type(given), 3)
    end
    return number
end

function Dict:incr(key, value, init, init_ttl)
    local err
    key, err = checked(key)
    if not key then
        return nil, err
    end
    value = numeric(value, "value")
    if init then
        init = numeric(init, "init")
    end
    if init_ttl ~= nil then
        init_ttl = numeric(init_ttl, "init_ttl")
        if init_ttl < 0 then
            error('bad "init_ttl" argument', 2)
        end
        if not init then
            error('must provide "init" when providing "init_ttl"', 2)
        end
    end
    local result
    if init and is_whole(value) and is_whole(init) then
        result, err = incr_whole(self, key, value, init, init_ttl or 0)
    end
    if not result and not err then
        result, err = incr_any(self, key, value, init, init_ttl or 0)
    end
    if not result then
        return nil, err
    end
    if not init then
        return result
    end
    return result, nil, false
end

local function push(self, key, value, how)
    local err
    key, err = checked(key)
    if not key then
        return nil, err
    end
    if type(value) ~= "string" and type(value) ~= "number" then
        return nil, "bad value type"
    end
    return update(self, key, 0, function(present, _, is_list)
        if present ~= nil and not is_list then
            return nil, nil, "value not a list"
        end
        local list = how(present, value)
        local metadata, metadata_length = values.form_of_list()
        return list, #list, metadata, metadata_length, lists.length(list)
    end)
end

-- The list that loses its last element is removed.
local function remove_emptied(self, key)
    return C.eyewall_remove_if(self.pointer, key, #key, info.serial) == OK
end

local function pop(self, key, how)
    local err
    key, err = checked(key)
    if not key then
        return nil, err
    end
    while true do
        local last, is_last
        local value, message = update(self, key, 0, function(present, _, is_list)
            if present == nil then
                return nil
            elseif not is_list then
                return nil, nil, "value not a list"
            end
            local list, element = how(present)
            if lists.length(list) == 0 then
                last, is_last = element, true
                return nil
            end
            is_last = false
            local metadata, metadata_length = values.form_of_list()
            return list, #list, metadata, metadata_length, element
        end)
        if not is_last then
            return value, message
        end
        if remove_emptied(self, key) then
            return last
        end
    end
end

function Dict:lpush(key, value)
    return push(self, key, value, lists.push_left)
end

function Dict:rpush(key, value)
    return push(self, key, value, lists.push_right)
end

function Dict:lpop(key)
    return pop(self, key, lists.pop_left)
end

function Dict:rpop(key)
    return pop(self, key, lists.pop_right)
end

function Dict:llen(key)
    local err
    key, err = checked(key)
    if not key then
        return nil, err
    end
    local length, message = 0, nil
    update(self, key, 0, function(present, _, is_list)
        if present ~= nil and not is_list then
            length, message = nil, "value not a list"
        elseif present ~= nil then
            length = lists.length(present)
        end
        return nil
    end)
    return length, message
end

function Dict:ttl(key)
    local err
    key, err = checked(key)
    if not key then
        return nil, err
    end
    local status = C.eyewall_peek(self.pointer, key, #key, hit)
    if status == MISS then
        return nil, "not found"
    end
    if status < 0 then
        return nil, message_of(status)
    end
    C.eyewall_hit_info(hit, info)
    C.eyewall_hit_release(hit)
    if info.ttl_left_ms == FOREVER then
        return 0
    end
    return tonumber(info.ttl_left_ms) / 1000
end

function Dict:expire(key, exptime)
    if not exptime or exptime < 0 then
        error('bad "exptime" argument', 2)
    end
    local err
    key, err = checked(key)
    if not key then
        return nil, err
    end
    -- A touch would make a stale entry fresh again.
    if C.eyewall_contains(self.pointer, key, #key) == MISS then
        return nil, "not found"
    end
    touch_options.ttl_ms = floor(exptime * 1000)
    touch_options.stale_ms = touch_options.ttl_ms > 0 and self.stale_ms or 0
    local status = C.eyewall_touch(self.pointer, key, #key, touch_options)
    if status < 0 then
        return nil, message_of(status)
    end
    if status ~= OK then
        return nil, "not found"
    end
    return true
end

-- Everything is out of date now; get_stale still finds what has not been evicted.
function Dict:flush_all()
    self.cache:purge_all { soft = true }
end

-- Removes up to `max` values that are out of date (0: all), and returns how many.
function Dict:flush_expired(max)
    max = max or 0
    local flushed = 0
    local next_key, stop = assert(self.cache:keys(true))
    for key in next_key do
        local status = C.eyewall_lookup(self.pointer, key, #key, hit)
        if status == STALE then
            C.eyewall_hit_info(hit, info)
            C.eyewall_hit_release(hit)
            if C.eyewall_remove_if(self.pointer, key, #key, info.serial) == OK then
                flushed = flushed + 1
            end
            if max > 0 and flushed >= max then
                break
            end
        else
            C.eyewall_hit_release(hit)
        end
    end
    stop()
    return flushed
end

function Dict:get_keys(max)
    max = max or 1024
    local keys = {}
    local next_key, stop = assert(self.cache:keys())
    for key in next_key do
        keys[#keys + 1] = key
        if #keys == max then
            break
        end
    end
    stop()
    return keys
end

function Dict:capacity()
    return self.cache:size()
end

function Dict:free_space()
    return self.cache:stats().free_bytes
end

return _M
