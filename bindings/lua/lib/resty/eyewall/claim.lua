-- Changes in several calls: under a claim of the key, and piece by piece.

local ffi = require "ffi"
local library = require "resty.eyewall.library"
local options = require "resty.eyewall.options"

local C = library.C

local _M = { _VERSION = "0.1.0" }

local LENGTH_UNKNOWN = 0xffffffffffffffffULL

local hit = ffi.new("eyewall_hit")
local claim_out = ffi.new("eyewall_claim *[1]")
local writer_out = ffi.new("eyewall_writer *[1]")

-- true; or false if another caller changed the entry meanwhile; or nil, an error and its name.
local function stored(status)
    if status < 0 then
        return library.failure(status)
    end
    return status == library.OK
end

-- Ends an object that has to be alive; returns the call's status.
local function finish(self, call, ...)
    if self.owned:pointer() == nil then
        error("it has ended already", 3)
    end
    return self.owned:finish(call, ...)
end

-- The right to change one key. `put`, `remove` or `stop` ends it.
local Claim = {}
Claim.__index = Claim

function Claim:put(value, given)
    local read = options.of_put(given)
    value = tostring(value)
    return stored(finish(self, C.eyewall_claim_put, value, #value, read, nil))
end

function Claim:remove()
    return stored(finish(self, C.eyewall_claim_remove))
end

function Claim:stop()
    self.owned:finish(C.eyewall_claim_end)
end

-- An entry that is written piece by piece; nobody sees it before `commit`. `commit` or `abort` ends it.
local Writer = {}
Writer.__index = Writer

function Writer:write(bytes)
    local writer = self.owned:pointer()
    if writer == nil then
        error("the writer has ended", 2)
    end
    local status = C.eyewall_writer_write(writer, bytes, #bytes)
    if status < 0 then
        return library.failure(status)
    end
    return true
end

function Writer:commit()
    return stored(finish(self, C.eyewall_writer_commit, nil))
end

function Writer:abort()
    self.owned:finish(C.eyewall_writer_abort)
end

-- Claims a key. The claim's `value` is that of the entry, or nil. It waits for another claim up to the lock deadline.
function _M.claim(cache, key)
    local status = C.eyewall_claim_begin(cache.pointer, key, #key, claim_out, hit)
    if status < 0 then
        return library.failure(status)
    end
    local claim = setmetatable({ owned = cache.anchor:own(claim_out[0], C.eyewall_claim_end) }, Claim)
    if status == library.OK then
        claim.value = ffi.string(hit.value, hit.value_length)
        local check = C.eyewall_hit_check(hit)
        C.eyewall_hit_release(hit)
        if check ~= library.OK then
            local none, failure, name = library.failure(check)
            claim:stop()
            return none, failure, name
        end
    end
    return claim
end

-- Begins a value; its length spares a copy, if it is known.
function _M.writer(cache, key, given, length)
    local read = options.of_put(given)
    local status = C.eyewall_writer_begin(cache.pointer, key, #key, length or LENGTH_UNKNOWN, read, writer_out)
    if status < 0 then
        return library.failure(status)
    end
    return setmetatable({ owned = cache.anchor:own(writer_out[0], C.eyewall_writer_abort) }, Writer)
end

return _M
