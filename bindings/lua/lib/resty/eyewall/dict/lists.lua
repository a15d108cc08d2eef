-- A list of a dictionary as bytes: the number of elements, then each element between its length and its length, so
-- that both ends are found at once. An element is a letter and text: "s" a string, "n" a number.

local _M = { _VERSION = "0.1.0" }

local EMPTY = "\0\0\0\0"

local function packed(number)
    local low = number % 65536
    local high = (number - low) / 65536
    return string.char(low % 256, math.floor(low / 256), high % 256, math.floor(high / 256))
end

local function unpacked(bytes, at)
    local first, second, third, fourth = bytes:byte(at, at + 3)
    return first + second * 2 ^ 8 + third * 2 ^ 16 + fourth * 2 ^ 24
end

local function framed(value)
    local element = type(value) == "number" and "n" .. ("%.17g"):format(value) or "s" .. value
    local length = packed(#element)
    return length .. element .. length
end

local function element_of(text)
    local value = text:sub(2)
    if text:sub(1, 1) == "n" then
        return tonumber(value)
    end
    return value
end

function _M.length(list)
    return unpacked(list, 1)
end

-- `list` is nil for one that doesn't exist yet.
function _M.push_left(list, value)
    list = list or EMPTY
    return packed(unpacked(list, 1) + 1) .. framed(value) .. list:sub(5)
end

function _M.push_right(list, value)
    list = list or EMPTY
    return packed(unpacked(list, 1) + 1) .. list:sub(5) .. framed(value)
end

-- The rest of the list, and the element. The list isn't empty.
function _M.pop_left(list)
    local length = unpacked(list, 5)
    return packed(unpacked(list, 1) - 1) .. list:sub(13 + length), element_of(list:sub(9, 8 + length))
end

function _M.pop_right(list)
    local length = unpacked(list, #list - 3)
    local start = #list - 3 - length
    return packed(unpacked(list, 1) - 1) .. list:sub(5, start - 5), element_of(list:sub(start, start + length - 1))
end

return _M
