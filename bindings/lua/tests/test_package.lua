-- What LuaRocks and OPM install: every module, each loadable by its name, in the version of the workspace.
local stage = require "stage"
local lu = require "luaunit"

TestPackage = {}

local function rockspec()
    local found = {}
    local chunk = assert(loadfile "bindings/lua/lua-resty-eyewall-0.1.0-1.rockspec")
    setfenv(chunk, found)()
    return found
end

-- The modules below lib, by the path of each.
local function modules()
    local found = {}
    local listed = assert(io.popen "cd bindings/lua && find lib -name '*.lua'")
    for path in listed:lines() do
        found[path] = path:gsub("^lib/", ""):gsub("%.lua$", ""):gsub("/", ".")
    end
    listed:close()
    return found
end

function TestPackage.test_the_rockspec_lists_every_module()
    local expected = {}
    for path, name in pairs(modules()) do
        expected[name] = path
    end
    lu.assertEquals(rockspec().build.modules, expected)
end

function TestPackage.test_every_module_has_the_version_of_the_rockspec()
    _G.ngx = _G.ngx or {}
    local version = rockspec().version:match "^[%d.]+"
    for _, name in pairs(modules()) do
        lu.assertEquals(require(name)._VERSION, version)
    end
    _G.ngx = nil
    lu.assertEquals(require("resty.eyewall").version(), version)
end

stage.run()
