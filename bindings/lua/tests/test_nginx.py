"""resty.eyewall in nginx: the dictionary beside lua_shared_dict, fills and streams that don't hold a worker up, and deaths."""
import http.client
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from server import Connection, Server, is_listening, missing, wait_for

COMMON = """
    lua_shared_dict theirs 4m;
    init_by_lua_block {
        eyewall = require "resty.eyewall"
        cache = assert(eyewall.open("@folder@/volume", { size = "16M" }))
        ngx.shared.ours = assert(require("resty.eyewall.dict").open("@folder@/dict", { size = "4M" }))
    }
"""
# Runs the body of the request as a chunk of Lua.
RUN = """
        location = /run {
            client_body_buffer_size 1m;
            content_by_lua_block {
                ngx.req.read_body()
                local chunk = assert(loadstring(ngx.req.get_body_data()))
                ngx.print(chunk())
            }
        }
"""

# Calls on both dictionaries, whose results have to be the same. `wait(dict, key)` waits until a value has expired.
CALLS = """
    local function shown(...)
        local words = {}
        for number = 1, select("#", ...) do
            local value = select(number, ...)
            words[number] = type(value) == "string" and ("%q"):format(value) or tostring(value)
        end
        return table.concat(words, ", ")
    end
    -- The message of an error without the place, and nil for results that end with nil.
    local function called(dict, call, ...)
        local results = { pcall(dict[call], dict, ...) }
        if not results[1] then
            return "error: " .. results[2]:gsub("^.-:%d+: ", "")
        end
        return shown(unpack(results, 2, table.maxn(results)))
    end
    local calls = {
        { "get", "k" }, { "get_stale", "k" }, { "ttl", "k" }, { "expire", "k", 1 }, { "delete", "k" }, { "llen", "k" },
        { "lpop", "k" }, { "rpop", "k" }, { "replace", "k", 1 }, { "incr", "k", 1 },
        { "set", "k", "text" }, { "get", "k" }, { "get_stale", "k" }, { "add", "k", 1 }, { "safe_add", "k", 1 },
        { "set", "k", "text", 0, 7 }, { "get", "k" }, { "get_stale", "k" }, { "ttl", "k" },
        { "replace", "k", 1.5 }, { "get", "k" }, { "incr", "k", 1 }, { "incr", "k", 1, 5 }, { "incr", "k", -0.25, 5, 9 },
        { "safe_set", "k", true, 100, 1 }, { "get", "k" }, { "incr", "k", 1 }, { "incr", "k", 1, 1 },
        { "set", "k", false }, { "get", "k" }, { "set", "k", nil }, { "get", "k" }, { "set", "k", 1e15 }, { "get", "k" },
        { "set", "k", "12345678" }, { "get", "k" }, { "incr", "k", 1 }, { "expire", "k", 0 }, { "ttl", "k" },
        { "set", 5, 6 }, { "get", 5 }, { "get", "5" }, { "set", true, "yes" }, { "get", "true" },
        { "get", nil }, { "get", "" }, { "get", ("k"):rep(65536) }, { "set", nil, 1 }, { "set", "", 1 },
        { "set", ("k"):rep(65536), 1 }, { "set", "k", {} }, { "set", "k", 1, -1 }, { "add", "k", nil }, { "replace", "k", nil },
        { "incr", nil, 1 }, { "incr", "", 1 }, { "incr", "new", 1, 10 }, { "incr", "new", 2.5 }, { "get", "new" },
        { "incr", "k", 1, true }, { "incr", "k", 1, nil, 5 }, { "incr", "k", 1, 0, -1 }, { "expire", "k" },
        { "ttl", nil }, { "ttl", "" }, { "expire", "", 1 }, { "expire", "absent", 1 },
        { "lpush", "k", 1 }, { "rpush", "k", 1 }, { "lpop", "k" }, { "rpop", "k" }, { "llen", "k" },
        { "lpush", "q", "a" }, { "rpush", "q", 2.5 }, { "lpush", "q", "" }, { "llen", "q" }, { "get", "q" }, { "get_stale", "q" },
        { "rpop", "q" }, { "lpop", "q" }, { "rpop", "q" }, { "lpop", "q" }, { "llen", "q" }, { "get", "q" },
        { "lpush", "q", true }, { "lpush", nil, 1 }, { "llen", "" },
        { "flush_all" }, { "get", "k" }, { "add", "k", "after" }, { "get", "k" },
    }
    local differences = {}
    for _, call in ipairs(calls) do
        local theirs, ours = called(ngx.shared.theirs, unpack(call, 1, table.maxn(call))), called(ngx.shared.ours, unpack(call, 1, table.maxn(call)))
        if theirs ~= ours then
            differences[#differences + 1] = shown(unpack(call, 1, table.maxn(call))):sub(1, 80) .. ": " .. theirs .. " | " .. ours
        end
    end
    return #calls .. "\\n" .. table.concat(differences, "\\n")
"""


# A test that doesn't end by itself. It prints the folder of its nginx.
KILLED = """
import signal, server
server.Server.setUpClass()
print(server.Server.folder, flush=True)
signal.pause()
"""


class Dictionary(Server):
    maxDiff = None
    http, server = COMMON, RUN

    def test_all_calls_return_what_those_of_lua_shared_dict_return(self):
        count, differences = self.text("/run", CALLS).split("\n", 1)
        self.assertEqual([], differences.splitlines())
        self.assertGreater(int(count), 90)

    def test_all_workers_share_a_dictionary(self):
        def count():
            return int(self.text("/run", 'return (ngx.shared.ours:incr("requests", 1, 0))'))

        self.assertEqual(list(range(1, 41)), sorted(self.at_once(40, count)))

    def test_other_libraries_take_it_for_a_dictionary(self):
        # What lua-resty-lock, lua-resty-limit-traffic and others do with the name of a dictionary.
        answer = self.text("/run", """
            local shared = ngx.shared["ours"]
            local is_locked, message = shared:add("lock", true, 30)
            local again, why = shared:add("lock", true, 30)
            shared:delete "lock"
            return tostring(is_locked), tostring(message), tostring(again), why
        """)
        self.assertEqual("truenilfalseexists", answer)


class Fills(Server):
    # With one worker, a request that held it up would hold all others up.
    workers = 1
    http, server = COMMON, RUN + """
        location = /fill {
            content_by_lua_block {
                local value, failure, state = cache:fill("page", function()
                    cache:increment("made", 1)
                    while not cache:get "gate" do
                        ngx.sleep(0.001)
                    end
                    return "the page", { ttl = 3600 }
                end, { wait = 60 })
                cache:increment("state " .. state, 1)
                ngx.print(value or failure)
            }
        }
        location = /busy {
            content_by_lua_block {
                local value, failure, name = cache:fill("busy", error, { wait = 0.002 })
                ngx.print(tostring(value), " ", name)
            }
        }
        # Here nginx may neither sleep nor wait.
        location = /filter {
            header_filter_by_lua_block {
                local value, failure, name = cache:fill("busy", error, { wait = 60 })
                ngx.header["X-Fill"] = name
            }
            return 200;
        }
        location = /send {
            content_by_lua_block {
                local is_sent, why = cache:send(ngx.var.arg_key or "large", 10000)
                cache:increment("sent " .. tostring(is_sent), 1)
                if is_sent == false then
                    ngx.exit(404)
                end
            }
        }
"""

    def count(self, name: str) -> int:
        return int(self.text("/run", f'return cache:increment("{name}", 0)'))

    def test_one_request_makes_a_page_and_the_others_wait_without_holding_the_worker_up(self):
        answers = []
        filling = threading.Thread(target=lambda: answers.extend(self.at_once(10, lambda: self.text("/fill"))))
        filling.start()
        try:
            wait_for(lambda: self.count("made"), "a request makes the page")
            # The only worker answers while one request makes the page and the others wait.
            wait_for(lambda: int(self.text("/run", "return cache:stats().busy")) > 20, "the others poll")
        finally:
            self.text("/run", 'return tostring(cache:put("gate", "open"))')
            filling.join()
        self.assertEqual(["the page"] * 10, answers)
        self.assertEqual((1, 1, 9), (self.count("made"), self.count("state made"), self.count("state hit")))

    def test_a_request_gives_up_after_its_time(self):
        self.text("/run", 'local _, flight = cache:begin_fill("busy", { wait = 60 }); kept = flight; return "kept"')
        self.assertEqual("nil busy", self.text("/busy"))
        self.assertEqual("busy", self.ask("/filter").fields["X-Fill"])
        self.text("/run", 'kept:abandon(); return "ended"')

    def test_a_value_is_sent_from_the_volume_in_pieces(self):
        value = "".join(f"{number};" for number in range(150_000))
        self.assertEqual(404, self.ask("/send?key=absent").status)
        self.text("/run", 'local words = {}; for number = 0, 149999 do words[number + 1] = number .. ";" end; '
                          'return tostring(cache:put("large", table.concat(words)))')
        # A client that doesn't read has the rest of the value held for it, while others are served and the key changes.
        slow = Connection(self.folder / "socket", receive_bytes=4096)
        slow.request("GET", "/send")
        response = slow.getresponse()
        beginning = response.read(1000)
        self.assertEqual("1", self.text("/run", "return cache:stats().pins"))
        self.assertEqual(value, self.text("/send"))
        self.text("/run", 'return tostring(cache:put("large", "short"))')
        self.text("/run", 'for number = 1, 3000 do cache:put("other" .. number, ("x"):rep(9000)) end; return "filled"')
        self.assertEqual("short", self.text("/send"))
        self.assertEqual(value, (beginning + response.read()).decode())
        slow.close()
        wait_for(lambda: self.text("/run", "return cache:stats().pins") == "0", "nothing is held")

    def test_a_client_that_goes_away_leaves_nothing_held(self):
        self.text("/run", 'return tostring(cache:put("large", ("y"):rep(900000)))')
        gone = Connection(self.folder / "socket", receive_bytes=4096)
        gone.request("GET", "/send")
        gone.getresponse().read(1000)
        gone.sock.shutdown(2)
        gone.close()
        wait_for(lambda: self.text("/run", "return cache:stats().pins") == "0", "nothing is held")


class Deaths(Server):
    # The workers may not open the volume themselves; they inherit it.
    user = "nobody nogroup"
    http, server = COMMON, RUN + """
        location = /storm {
            content_by_lua_block {
                for step = 1, 100 do
                    local number = math.random(200)
                    local key = "k" .. number
                    ngx.shared.ours:set(key, (key .. ";"):rep(number * 7))
                    ngx.shared.ours:incr("count", 1, 0)
                    for _, name in ipairs { key, "k" .. 201 - number } do
                        local value = ngx.shared.ours:get(name)
                        if value and value:gsub(name .. ";", "") ~= "" then
                            ngx.log(ngx.ERR, "WRONG BYTES of ", name)
                        end
                    end
                end
                ngx.print "done"
            }
        }
"""

    def test_workers_die_while_they_write(self):
        is_ended = threading.Event()

        def storm():
            while not is_ended.is_set():
                try:
                    self.ask("/storm")
                except (OSError, http.client.HTTPException):
                    pass  # the worker of this request has been killed

        threads = [threading.Thread(target=storm) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            before = 0
            for _ in range(12):
                workers = wait_for(self.both_workers, "two workers run")
                wait_for(lambda: (count := self.counted()) is not None and count > before, "the workers count")
                before = self.counted() or before
                os.kill(min(workers), signal.SIGKILL)
                wait_for(lambda: min(workers) not in self.children(), "nginx knows of the death")
        finally:
            is_ended.set()
            for thread in threads:
                thread.join()
        self.assertNotIn("WRONG BYTES", self.log())
        self.assertEqual("done", self.text("/storm"))

    def counted(self) -> int | None:
        try:
            return int(self.text("/run", 'return ngx.shared.ours:get("count") or 0'))
        except (OSError, http.client.HTTPException):
            return None  # the worker of this request has been killed

    def both_workers(self) -> set[int]:
        found = self.children()
        return found if len(found) == 2 else set()

    def test_a_reload_finds_the_cache_warm(self):
        self.text("/run", 'return tostring(cache:put("kept", "warm"))')
        before = self.children()
        os.kill(self.nginx.pid, signal.SIGHUP)
        wait_for(lambda: len(self.children()) == 2 and not self.children() & before, "all workers are new")
        self.assertEqual("warm", self.text("/run", 'return cache:get "kept"'))


class Killed(unittest.TestCase):
    def test_nginx_ends_with_a_test_that_is_killed(self):
        if reason := missing():
            self.skipTest(reason)
        with tempfile.TemporaryDirectory(prefix="eyewall-lua-") as folder:
            killed = subprocess.Popen([sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": folder}, stdout=subprocess.PIPE, text=True)
            with killed:
                server = pathlib.Path(killed.stdout.readline().strip())
                self.assertTrue(is_listening(server))
                killed.kill()
            wait_for(lambda: not is_listening(server), "nginx has ended")


if __name__ == "__main__":
    unittest.main()
