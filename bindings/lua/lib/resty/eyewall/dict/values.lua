-- How an entry of the volume holds a value of a dictionary.
--
-- A string without flags is the entry's value itself, so that other languages read it and write it. All else has eight
-- bytes of metadata: "Lua", a letter for the type, and the flags as int32_t. A whole number is a counter of the
-- library, eight bytes, so that `incr` is one atomic call. No other value of a dictionary has eight bytes: the library
-- recognises counters by their length.

local ffi = require "ffi"

local ffi_string = ffi.string
local floor = math.floor
local tonumber = tonumber
local type = type

local _M = { _VERSION = "0.1.0" }

ffi.cdef [[
typedef struct resty_eyewall_form {
  uint32_t type;
  int32_t flags;
} resty_eyewall_form;
]]

local FORM_BYTES = 8
local WHOLE_MAX = 2 ^ 53

local function type_of(letter)
    return 0x61754c + letter:byte() * 2 ^ 24 -- "Lua" and the letter, in little-endian order
end

local STRING = type_of "s"
local PADDED = type_of "p" -- a string of eight bytes, and one more
local WHOLE = type_of "i"
local DOUBLE = type_of "n" -- eight bytes, and one more
local BOOLEAN = type_of "b"
local LIST = type_of "l"

local form = ffi.new("resty_eyewall_form")
local whole = ffi.new("int64_t[1]")
local double = ffi.new("double[1]")
local form_of = ffi.typeof("const resty_eyewall_form *")
local whole_of = ffi.typeof("const int64_t *")

local function is_whole(value)
    return value == floor(value) and value > -WHOLE_MAX and value < WHOLE_MAX
end
_M.is_whole = is_whole

-- The metadata of this type and these flags; the next call overwrites it.
local function formed(kind, flags)
    form.type = kind
    form.flags = flags
    return form, FORM_BYTES
end

function _M.form_of_whole()
    return formed(WHOLE, 0)
end

function _M.form_of_list()
    return formed(LIST, 0)
end

-- The bytes of a value, their length, and its metadata with its length; nil if dictionaries don't hold such values.
function _M.encode(value, flags)
    local kind = type(value)
    if kind == "string" then
        if #value == 8 then
            return value .. "\0", 9, formed(PADDED, flags)
        end
        if flags == 0 then
            return value, #value, nil, 0
        end
        return value, #value, formed(STRING, flags)
    end
    if kind == "number" then
        if is_whole(value) then
            whole[0] = value
            return whole, 8, formed(WHOLE, flags)
        end
        double[0] = value
        return ffi_string(double, 8) .. "\0", 9, formed(DOUBLE, flags)
    end
    if kind == "boolean" then
        return value and "\1" or "\0", 1, formed(BOOLEAN, flags)
    end
    return nil
end

-- The value and the flags of bytes in memory and their metadata; nil and an error if it is a list.
function _M.decode(bytes, length, metadata, metadata_length)
    if metadata_length ~= FORM_BYTES then
        return ffi_string(bytes, length), 0
    end
    local read = ffi.cast(form_of, metadata)
    local kind, flags = read.type, read.flags
    if kind == STRING then
        return ffi_string(bytes, length), flags
    end
    if kind == WHOLE and length == 8 then
        return tonumber(ffi.cast(whole_of, bytes)[0]), flags
    end
    if kind == DOUBLE and length == 9 then
        ffi.copy(double, bytes, 8)
        return double[0], flags
    end
    if kind == PADDED and length == 9 then
        return ffi_string(bytes, length - 1), flags
    end
    if kind == BOOLEAN and length == 1 then
        return ffi_string(bytes, 1) == "\1", flags
    end
    if kind == LIST then
        return nil, "value is a list"
    end
    return ffi_string(bytes, length), 0
end

return _M
