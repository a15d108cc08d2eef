-- An object of the index: its bytes, its popularity in this period, its period, and when it expires.
local function read(entry, period)
    local bytes, uses, of, until_ms = string.match(entry, '^(%d+) (%d+) (%d+) (%d+)$')
    if not bytes then return 0, 0, 0, 0 end
    uses, of = tonumber(uses), tonumber(of)
    if period > of then uses = math.floor(uses / 2 ^ math.min(period - of, 60)) end
    return tonumber(bytes), uses, of, tonumber(until_ms)
end

local function write(bytes, uses, period, until_ms)
    return string.format('%.0f %.0f %.0f %.0f', bytes, uses, period, until_ms)
end
