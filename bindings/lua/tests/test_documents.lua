-- The snippets of README.md run. Those in nginx's language are in examples/page-cache, which test_page_cache.py runs.
local stage = require "stage"
local lu = require "luaunit"

TestDocuments = {}

function TestDocuments.test_each_snippet_runs()
    local file = assert(io.open "bindings/lua/README.md")
    local text = file:read "*a"
    file:close()
    local count = 0
    for snippet in text:gmatch "\n```lua\n(.-)\n```" do
        if not snippet:find("ngx%.") then
            count = count + 1
            stage.with_volume(function(path)
                snippet = 'local eyewall = require "resty.eyewall"\n' .. snippet:gsub("/dev/shm/[%w-]+", path)
                local run, failure = loadstring(snippet)
                lu.assertNotNil(run, failure)
                run()
            end)
        end
    end
    lu.assertTrue(count >= 2)
end

stage.run()
