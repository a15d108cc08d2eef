-- A held entry: its bytes stay in the volume, and can't be evicted, until `release`.

local ffi = require "ffi"
local library = require "resty.eyewall.library"

local C = library.C
local ffi_string = ffi.string
local min = math.min

local _M = { _VERSION = "0.1.0" }

local PIECE_BYTES = 64 * 1024

local info = ffi.new("eyewall_info")

local states = { [library.OK] = "fresh", [library.STALE] = "stale", [library.NEGATIVE] = "negative" }

local Hit = {}
Hit.__index = Hit

-- Takes over `object`, an eyewall_hit that a call has just filled with this status.
function _M.new(anchor, object, status)
    return setmetatable({
        owned = anchor:own(object, C.eyewall_hit_release),
        state = states[status],
        length = tonumber(object.value_length),
    }, Hit)
end

local function text(bytes)
    return ffi_string(bytes.data, bytes.length)
end

local function held(self)
    local object = self.owned:pointer()
    if object == nil then
        error("the hit is released: hold the key again", 3)
    end
    return object
end

-- `count` bytes of the value from `offset` on, as a string; all of them without arguments.
function Hit:bytes(offset, count)
    local object = held(self)
    offset = offset or 0
    count = min(count or self.length, self.length - offset)
    if offset < 0 or count < 0 then
        error("bad range of a value of " .. self.length .. " bytes", 2)
    end
    return ffi_string(ffi.cast("const char *", object.value) + offset, count)
end

-- true, if the bytes that were read are those that were put; else nil and an error.
function Hit:check()
    local status = C.eyewall_hit_check(held(self))
    if status ~= library.OK then
        return library.failure(status)
    end
    return true
end

function Hit:key()
    return text(C.eyewall_hit_key(held(self)))
end

function Hit:metadata()
    return text(C.eyewall_hit_metadata(held(self)))
end

function Hit:tags()
    local object, tags = held(self), {}
    while true do
        local tag = C.eyewall_hit_tag(object, #tags)
        if tag.data == nil then
            return tags
        end
        tags[#tags + 1] = text(tag)
    end
end

local function seconds(milliseconds)
    return milliseconds == 0xffffffffffffffffULL and math.huge or tonumber(milliseconds) / 1000
end

-- The properties of the entry as a table; times in seconds.
function Hit:info()
    local status = C.eyewall_hit_info(held(self), info)
    if status ~= library.OK then
        return library.failure(status)
    end
    return {
        serial = info.serial + 0ULL,
        created = tonumber(info.created_ms) / 1000,
        ttl_left = seconds(info.ttl_left_ms),
        usable_left = seconds(info.usable_left_ms),
        reason = info.is_negative and info.reason or nil,
        is_copy = info.is_copy,
    }
end

-- Sends the value to the client of this request in pieces, and waits for the client between them without blocking the
-- worker. Returns true, or nil and an error. It doesn't release the hit.
function Hit:send(piece_bytes)
    piece_bytes = piece_bytes or PIECE_BYTES
    for offset = 0, self.length - 1, piece_bytes do
        local piece = self:bytes(offset, piece_bytes)
        local is_intact, failure, name = self:check()
        if not is_intact then
            return nil, failure, name
        end
        local is_sent, why = ngx.print(piece)
        if is_sent then
            is_sent, why = ngx.flush(true)
        end
        if not is_sent then
            return nil, why
        end
    end
    return true
end

function Hit:release()
    self.owned:finish(C.eyewall_hit_release)
end

return _M
