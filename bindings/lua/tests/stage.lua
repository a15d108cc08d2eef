-- What all tests use: luaunit, a volume in a folder that is removed, and processes.

package.path = "bindings/lua/lib/?.lua;bindings/lua/tests/?.lua;" .. package.path

local ffi = require "ffi"

ffi.cdef [[
char *mkdtemp(char *template);
int rmdir(const char *path);
int fork(void);
int kill(int process, int signal);
int waitpid(int process, int *status, int options);
void _exit(int status);
int prctl(int option, unsigned long signal, unsigned long, unsigned long, unsigned long);
int usleep(unsigned int microseconds);
]]

local C = ffi.C

local _M = { SIGKILL = 9 }

local template = ffi.new("char[?]", 64, "/tmp/eyewall-lua-XXXXXX")
assert(C.mkdtemp(template) ~= nil)
local folder = ffi.string(template)

-- The path of a volume that doesn't exist yet.
function _M.path()
    return folder .. "/volume"
end

-- Calls `test` with a new volume's path, and removes the volume.
function _M.with_volume(test, ...)
    local is_done, failure = xpcall(test, debug.traceback, _M.path(), ...)
    collectgarbage()
    os.remove(_M.path())
    if not is_done then
        error(failure, 0)
    end
end

-- Runs `work` in a forked process, which exits by what it returns: true is 0.
function _M.fork(work)
    local child = C.fork()
    assert(child >= 0)
    if child == 0 then
        C.prctl(1, _M.SIGKILL, 0, 0, 0) -- PR_SET_PDEATHSIG: it doesn't outlive the test
        local is_done, result = xpcall(work, debug.traceback)
        if not is_done then
            io.stderr:write(result, "\n")
        end
        C._exit(is_done and result and 0 or 1)
    end
    return child
end

-- The status of a child's end: 0 if its work returned true.
function _M.wait(child)
    local status = ffi.new("int[1]")
    assert(C.waitpid(child, status, 0) == child)
    return status[0]
end

function _M.kill(child)
    assert(C.kill(child, _M.SIGKILL) == 0)
    return _M.wait(child)
end

-- Whether this process has the volume in its memory, if it didn't create its file.
function _M.is_mapped(path)
    for line in io.lines "/proc/self/maps" do
        if line:find(path, 1, true) then
            return true
        end
    end
    return false
end

-- Waits for a condition, at most a minute.
function _M.wait_for(condition)
    local stop = os.time() + 60
    while not condition() do
        assert(os.time() < stop, "the condition didn't come true in a minute")
        C.usleep(1000)
    end
end

-- Runs the tests, removes the folder, and ends the program.
function _M.run()
    local failed = require("luaunit").LuaUnit.run()
    C.rmdir(folder)
    os.exit(failed == 0 and 0 or 1)
end

return _M
