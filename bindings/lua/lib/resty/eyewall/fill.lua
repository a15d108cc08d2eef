-- Single flight: one caller over all processes makes a value, and the others wait for it.
--
-- In nginx a waiting request polls and sleeps between, so the worker serves others. Outside nginx, and while nginx
-- starts, the library waits by itself.

local ffi = require "ffi"
local library = require "resty.eyewall.library"
local options = require "resty.eyewall.options"
local hits = require "resty.eyewall.hit"

local C = library.C

local _M = { _VERSION = "0.1.0" }

local WAIT_SECONDS = 10
local PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.001, 0.05

local may_sleep_in = {
    rewrite = true, server_rewrite = true, access = true, content = true, timer = true, preread = true,
    ssl_cert = true, ssl_session_fetch = true, ssl_client_hello = true,
}
local may_block_in = { init = true, init_worker = true, exit_worker = true }

local flight_out = ffi.new("eyewall_flight *[1]")
local reason_out = ffi.new("uint16_t[1]")

-- The right, and the duty, to make an entry. Exactly one of its methods ends it.
local Flight = {}
Flight.__index = Flight

-- Ends a flight that has to be alive; returns the call's status.
local function finish(self, call, ...)
    if self.owned:pointer() == nil then
        error("the flight has ended", 3)
    end
    return self.owned:finish(call, ...)
end

-- Stores the value. true; or false: another caller has changed the key meanwhile; or nil and an error.
function Flight:store(value, given)
    local read = options.of_put(given)
    local status = finish(self, C.eyewall_flight_store, value, #value, read, nil)
    if status < 0 then
        return library.failure(status)
    end
    return status == library.OK
end

-- Stores that there is nothing, so that nobody tries again for `ttl` seconds.
function Flight:remember(reason, ttl)
    local status = finish(self, C.eyewall_flight_remember, reason, math.max(1, math.floor(ttl * 1000)))
    if status < 0 then
        return library.failure(status)
    end
    return true
end

-- Stores nothing: one of the waiting callers makes the value.
function Flight:abandon()
    self.owned:finish(C.eyewall_flight_end)
end

local function ask(cache, key, wait, use_stale, hit)
    return C.eyewall_fill_begin(cache.pointer, key, #key, wait * 1000, use_stale, hit, reason_out, flight_out)
end

-- As `ask`, but it sleeps instead of waiting.
local function ask_often(cache, key, wait, use_stale, hit)
    local pause, stop = PAUSE_SECONDS_MIN, ngx.now() + wait
    while true do
        local status = ask(cache, key, 0, use_stale, hit)
        if status ~= library.BUSY or ngx.now() >= stop then
            return status
        end
        ngx.sleep(pause)
        pause = math.min(pause * 1.5, PAUSE_SECONDS_MAX)
    end
end

local function phase()
    return ngx and ngx.get_phase and ngx.get_phase()
end

-- Returns a hit, a flight, or the reason of a negative entry, each in its place; or nil, nil, nil, an error and its name.
function _M.begin(cache, key, given)
    given = given or {}
    local hit, wait, use_stale = ffi.new("eyewall_hit"), given.wait or WAIT_SECONDS, given.use_stale or false
    local present = phase()
    local status
    if not present or may_block_in[present] then
        status = ask(cache, key, wait, use_stale, hit)
    elseif may_sleep_in[present] then
        status = ask_often(cache, key, wait, use_stale, hit)
    else
        status = ask(cache, key, 0, use_stale, hit)
    end
    if status == library.FILL then
        local flight = setmetatable({ owned = cache.anchor:own(flight_out[0], C.eyewall_flight_end) }, Flight)
        return nil, flight
    end
    if status == library.OK or status == library.STALE then
        return hits.new(cache.anchor, hit, status)
    end
    if status == library.NEGATIVE then
        return nil, nil, tonumber(reason_out[0])
    end
    return nil, nil, nil, select(2, library.failure(status))
end

local function make_value(flight, make, key, given)
    local is_done, value, changed = pcall(make, key)
    if not is_done then
        flight:abandon()
        error(value, 0)
    end
    if value == nil then
        if changed == nil and given.negative_ttl then
            flight:remember(0, given.negative_ttl)
            return nil, nil, "negative"
        end
        flight:abandon()
        return nil, changed, "failed"
    end
    if type(value) ~= "string" then
        flight:abandon()
        error("a fill has to return a string, or nil and an error; it returned a " .. type(value), 0)
    end
    -- Wrong options end the flight before they are an error of the caller.
    local is_stored, stored, failure = pcall(flight.store, flight, value, changed or given)
    if not is_stored then
        flight:abandon()
        error(stored, 0)
    end
    return value, nil, "made", failure
end

-- Returns the value of a key, its error, and its state; README.md says which. `make(key)` returns the value and, if it
-- likes, other options for it; or nil and an error.
function _M.fill(cache, key, make, given)
    given = given or {}
    local hit, flight, reason, failure, name = _M.begin(cache, key, given)
    if hit then
        local value, state = hit:bytes(), hit.state == "stale" and "stale" or "hit"
        local is_intact, why, what = hit:check()
        hit:release()
        if not is_intact then
            return nil, why, what
        end
        return value, nil, state
    end
    if flight then
        return make_value(flight, make, key, given)
    end
    if reason then
        return nil, nil, "negative"
    end
    return nil, failure, name
end

return _M
