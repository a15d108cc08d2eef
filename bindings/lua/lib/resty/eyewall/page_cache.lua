-- A page cache in front of proxy_pass. Each phase of nginx calls one method:
--
--     access_by_lua_block        { pages:access() }          a hit is sent from here
--     header_filter_by_lua_block { pages:header_filter() }   decides whether the response may be stored
--     body_filter_by_lua_block   { pages:body_filter() }     collects and stores it
--     log_by_lua_block           { pages:log() }             ends what an aborted request has left
--
-- The last three stand in the server, so that the locations to which an internal redirect leads have them, too.
--
-- Concurrent requests for a page cost the origin one request. It stores what RFC 9111 lets a shared cache store, except
-- responses that vary by more than the coding. examples/page-cache is a whole server.

local ffi = require "ffi"
local eyewall = require "resty.eyewall"

local ngx = ngx
local floor = math.floor
local max = math.max
local min = math.min

local _M = { _VERSION = eyewall._VERSION }

local BODY_BYTES_MAX = 1024 * 1024
local WAIT_SECONDS = 5
local PASS_SECONDS = 2
local FOREVER_SECONDS = 10 ^ 9
-- The library's limit, less the tag of the host.
local TAGS_MAX = 31

local cacheable = { [200] = true, [203] = true, [301] = true, [308] = true, [404] = true, [410] = true }

-- They are for one connection, or nginx makes them itself.
local not_stored = {
    ["connection"] = true, ["keep-alive"] = true, ["transfer-encoding"] = true, ["content-length"] = true,
    ["age"] = true, ["date"] = true, ["server"] = true, ["cache-status"] = true, ["te"] = true, ["upgrade"] = true,
    ["proxy-authenticate"] = true, ["trailer"] = true,
}
local fields_of_tags = { "Surrogate-Key", "Cache-Tag", "xkey" }

local Pages = {}
Pages.__index = Pages

-- `ttl`: seconds for responses that say nothing about caching (none: they aren't stored). `wait`: how long a request
-- waits for another one's response. `body_bytes_max`: larger bodies aren't stored.
function _M.new(cache, given)
    given = given or {}
    return setmetatable({
        cache = cache,
        ttl = given.ttl,
        wait = given.wait or WAIT_SECONDS,
        body_bytes_max = min(given.body_bytes_max or BODY_BYTES_MAX, cache:entry_bytes_max() - 4096),
    }, Pages)
end

local default_ports = { http = "80", https = "443" }

-- The host in lower case, with the port unless it is the scheme's own.
local function host_of(scheme)
    local port = ngx.var.server_port
    if port == "" or port == default_ports[scheme] then
        return ngx.var.host
    end
    return ngx.var.host .. ":" .. port
end

-- The key of a response is the address of its request.
local function address(scheme)
    return scheme .. "://" .. host_of(scheme) .. ngx.var.request_uri
end

-- The fills of this worker's requests. A fill has the flight, and what body_filter has collected. Its key is the place of
-- nginx's request in memory: an internal redirect empties ngx.ctx, but keeps the request. The table is weak. The ngx.ctx
-- of access() keeps the fill; nginx frees that table when the request ends, also after a redirect. So the collector ends
-- the fill of a request that ended without log().
local fills = setmetatable({}, { __mode = "v" })

local get_request

local function place()
    get_request = get_request or require("resty.core.base").get_request
    return tonumber(ffi.cast("uintptr_t", get_request()))
end

local function begin(flight)
    local fill = { flight = flight, address = address(ngx.var.scheme), started = ngx.req.start_time() }
    fills[place()] = fill
    ngx.ctx.eyewall_fill = fill
end

-- The fill of this request. Another request may have begun in the place of one that ended without log().
local function present()
    local fill = fills[place()]
    if fill and fill.started == ngx.req.start_time() and fill.address == address(ngx.var.scheme) then
        return fill
    end
end

-- Removes the fill in the place of this request, also one of an earlier request, and returns its flight.
local function take()
    local number = place()
    local fill = fills[number]
    fills[number] = nil
    return fill and fill.flight
end

local function abandon()
    local flight = take()
    if flight then
        flight:abandon()
    end
end

local function first(field)
    return type(field) == "table" and table.concat(field, ", ") or field
end

-- The directives of Cache-Control by name; those without a value are true.
local function directives(field)
    local found = {}
    for name, value in (first(field) or ""):gmatch '([%w-]+)%s*=?%s*"?([^,"]*)"?' do
        found[name:lower()] = value ~= "" and value or true
    end
    return found
end

-- Sends a hit, and ends the request. An entry that another program has put passes to the origin.
local function send(hit)
    local info = hit:info()
    local lines = hit:metadata():gmatch "[^\n]+"
    local status, age = (lines() or ""):match "^(%d+) (%d+)$"
    if not status then
        return hit:release()
    end
    ngx.status = tonumber(status)
    local header, name_before = ngx.header, nil
    for line in lines do
        local name, value = line:match "^([^:]+): (.*)$"
        if name == name_before then
            local values = header[name]
            value = type(values) == "table" and { unpack(values) } or { values, value }
        end
        header[name] = value
        name_before = name
    end
    age = tonumber(age) + floor(max(0, ngx.now() - info.created))
    header["Age"] = age
    header["Content-Length"] = hit.length
    header["Cache-Status"] = hit.state == "stale" and "Eyewall; hit; detail=stale" or "Eyewall; hit"
    ngx.ctx.eyewall_is_hit = true
    local is_sent, why = true, nil
    if hit.length > 0 then
        is_sent, why = hit:send()
    else
        ngx.send_headers()
    end
    hit:release()
    if not is_sent then
        ngx.log(ngx.INFO, "eyewall: the client has gone: ", why)
    end
    return ngx.exit(ngx.OK)
end

-- Whether the client has sent a GET. An internal redirect makes a GET of other methods.
local function is_get()
    return ngx.req.get_method() == "GET" and (ngx.var.request or ""):sub(1, 4) == "GET "
end

function Pages:access()
    if ngx.req.is_internal() and present() then
        return -- an internal redirect has led here: its response is that of the address
    end
    abandon()
    local fields = ngx.req.get_headers(0)
    if not is_get() or fields["Authorization"] then
        return
    end
    -- A hit answers such a request, too, but the cache stores no response to it.
    local may_store = not fields["Range"] and not directives(fields["Cache-Control"])["no-store"]
    local hit, flight, _, failure, name = self.cache:begin_fill(address(ngx.var.scheme), {
        wait = may_store and self.wait or 0, use_stale = true,
    })
    if hit then
        return send(hit)
    end
    if failure and name ~= "busy" then
        ngx.log(ngx.ERR, "eyewall: ", failure)
    end
    if flight and not may_store then
        return flight:abandon()
    end
    if flight then
        begin(flight)
        -- The origin sends the whole response, for all clients.
        for _, field in ipairs { "Accept-Encoding", "If-None-Match", "If-Modified-Since" } do
            ngx.req.clear_header(field)
        end
    end
end

-- The seconds of a directive; nil without the directive. Unreadable seconds count as 0: the response is stale.
local function seconds(value)
    if value == nil then
        return nil
    end
    return min(type(value) == "string" and tonumber(value:match "^(%d+)%s*$") or 0, FOREVER_SECONDS)
end

-- For how many seconds the response may be used, and for how many more when it is stale; nil: it may not be stored.
local function lifetime(self, header)
    local control = directives(header["Cache-Control"])
    if control["no-store"] or control["private"] or control["no-cache"] or header["Set-Cookie"] then
        return nil
    end
    local coding, vary = header["Content-Encoding"], first(header["Vary"])
    if coding and coding ~= "identity" or vary and vary:lower() ~= "accept-encoding" then
        return nil
    end
    local fresh = seconds(control["s-maxage"]) or seconds(control["max-age"])
    if not fresh and header["Expires"] then
        fresh = (ngx.parse_http_time(first(header["Expires"])) or 0) - ngx.time()
    end
    fresh = fresh or self.ttl
    local age = tonumber(first(header["Age"])) or 0
    if not fresh or fresh - age <= 0 then
        return nil
    end
    return fresh - age, seconds(control["stale-while-revalidate"]), age
end

-- The tags of the response, each with its host before it; nil: there are too many.
local function tags_of(header)
    local host, tags = ngx.var.host, {}
    for _, field in ipairs(fields_of_tags) do
        for tag in (first(header[field]) or ""):gmatch "[^%s,]+" do
            tags[#tags + 1] = host .. ":" .. tag
        end
    end
    return #tags <= TAGS_MAX and tags or nil
end

-- The response's head as it is stored: a line with status and age, and a line for each field.
local function head_of(age)
    local lines = { ngx.status .. " " .. age }
    for name, value in pairs(ngx.resp.get_headers(0, true)) do
        if not not_stored[name:lower()] then
            for _, one in ipairs(type(value) == "table" and value or { value }) do
                lines[#lines + 1] = name .. ": " .. one
            end
        end
    end
    return table.concat(lines, "\n")
end

-- The options of storing this response; nil if it may not be stored.
local function judge(self)
    local header = ngx.header
    local length = tonumber(header["Content-Length"])
    if not cacheable[ngx.status] or length and length > self.body_bytes_max then
        return nil
    end
    local fresh, stale, age = lifetime(self, header)
    local tags = fresh and tags_of(header)
    if not tags then
        return nil
    end
    return { ttl = fresh, stale = stale ~= 0 and stale or nil, tags = tags, metadata = head_of(age) }
end

function Pages:header_filter()
    local fill = present()
    if not fill then
        if not ngx.ctx.eyewall_is_hit then
            ngx.header["Cache-Status"] = "Eyewall; fwd=bypass"
        end
        return
    end
    local given = judge(self)
    if given then
        fill.response = { given = given, pieces = {}, bytes = 0, length = tonumber(ngx.header["Content-Length"]) }
        ngx.header["Cache-Status"] = "Eyewall; fwd=uri-miss; stored"
        return
    end
    ngx.header["Cache-Status"] = "Eyewall; fwd=uri-miss"
    if ngx.status >= 500 then
        abandon()
    else
        -- The next requests go to the origin side by side, instead of one after the other.
        take():remember(0, PASS_SECONDS)
    end
end

function Pages:body_filter()
    local fill = present()
    local response = fill and fill.response
    if not response then
        return
    end
    local piece, is_last = ngx.arg[1], ngx.arg[2]
    if piece ~= "" then
        response.pieces[#response.pieces + 1] = piece
        response.bytes = response.bytes + #piece
    end
    local is_cut = is_last and response.length and response.bytes ~= response.length
    if response.bytes > self.body_bytes_max or is_cut then
        return abandon()
    end
    if is_last then
        local is_stored, failure = take():store(table.concat(response.pieces), response.given)
        if is_stored == nil then
            ngx.log(ngx.ERR, "eyewall: ", failure)
        end
    end
end

function Pages.log()
    abandon()
end

-- Makes one response stale, for as long as it may be used.
local function soften(cache, key)
    local hit, failure = cache:hold(key)
    if not hit then
        return not failure, failure
    end
    local usable = hit:info().usable_left
    hit:release()
    return cache:touch(key, { ttl = 0.001, stale = min(max(usable, 0.001), FOREVER_SECONDS) })
end

-- Answers a request with the method PURGE. With `Xkey`, `Surrogate-Key` or `X-Cache-Tags` it purges the host's
-- responses with these tags; an address that ends with `.*` is a prefix; all else is one address.
-- `Fastly-Soft-Purge: 1` makes them stale. nginx decides who may purge, by allow and deny.
function Pages:purge()
    local fields = ngx.req.get_headers(0)
    local mode = { soft = fields["Fastly-Soft-Purge"] == "1" }
    local tags = first(fields["Xkey"] or fields["Surrogate-Key"] or fields["X-Cache-Tags"])
    local is_purged, failure = true, nil
    local function purge(what, which)
        if is_purged then
            is_purged, failure = self.cache[what](self.cache, which, mode)
        end
    end
    if tags then
        for tag in tags:gmatch "[^%s,]+" do
            purge("purge_tag", ngx.var.host .. ":" .. tag)
        end
    end
    for _, scheme in ipairs(tags and {} or { "http", "https" }) do
        local key = address(scheme)
        if key:sub(-2) == ".*" then
            purge("purge_prefix", key:sub(1, -3))
        elseif is_purged then
            if mode.soft then
                is_purged, failure = soften(self.cache, key)
            else
                is_purged, failure = self.cache:remove(key)
            end
            is_purged = is_purged ~= nil
        end
    end
    if not is_purged then
        ngx.log(ngx.ERR, "eyewall: ", failure)
        return ngx.exit(ngx.HTTP_INTERNAL_SERVER_ERROR)
    end
    ngx.say "purged"
end

return _M
