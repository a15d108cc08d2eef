-- The declarations for the FFI are those of eyewall.h.
local stage = require "stage"
local lu = require "luaunit"

local function read(path)
    local file = assert(io.open(path))
    local text = file:read "*a"
    file:close()
    return text
end

local function without_blanks(text)
    return (text:gsub("%s+", " "):gsub("%( ", "("):gsub(" %)", ")"))
end

TestDeclarations = {}

local header = without_blanks(read("bindings/c/include/eyewall.h"):gsub("/%*.-%*/", ""))
local source = read "bindings/lua/lib/resty/eyewall/library.lua"
local declared = without_blanks(source:match "ffi%.cdef %[%[(.-)%]%]")

function TestDeclarations.test_each_declaration_is_in_the_header()
    local count = 0
    local structs = declared:gsub("typedef struct [%w_]+ %b{} [%w_]+;", function(struct)
        lu.assertTrue(header:find(struct, 1, true) ~= nil, "eyewall.h has no " .. struct)
        count = count + 1
        return ""
    end)
    for declaration in structs:gmatch "([^;]+);" do
        declaration = declaration:match "^%s*(.-)%s*$" .. ";"
        lu.assertTrue(header:find(declaration, 1, true) ~= nil, "eyewall.h has no " .. declaration)
        count = count + 1
    end
    lu.assertTrue(count > 50)
end

function TestDeclarations.test_each_status_has_its_number_and_its_name()
    local library = require "resty.eyewall.library"
    local answers, errors = 0, 0
    for name, number in header:gmatch "EYEWALL_([%u_]+) = (%-?%d+)," do
        number = tonumber(number)
        if number < 0 then
            lu.assertEquals(library.error_names[-number], name:gsub("^ERROR_", ""):lower())
            errors = errors + 1
        elseif not name:find "^PURGE_" then
            lu.assertEquals(library[name], number)
            answers = answers + 1
        end
    end
    lu.assertEquals({ answers, errors }, { 9, #library.error_names })
end

function TestDeclarations.test_each_flag_has_its_number()
    local flags = require("resty.eyewall.library").flags
    for name, number in pairs(flags) do
        local define = "#define EYEWALL_" .. name:upper() .. " " .. number .. " "
        lu.assertTrue(header:find(define, 1, true) ~= nil, "eyewall.h has no " .. define)
    end
end

stage.run()
