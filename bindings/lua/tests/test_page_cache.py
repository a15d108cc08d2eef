"""The page cache in front of proxy_pass, as examples/page-cache has it."""
import threading
import unittest
from email.utils import formatdate
from urllib.parse import quote, unquote

from server import LUA, Connection, Origin, Server, wait_for

EXAMPLE = (LUA / "examples/page-cache/nginx.conf").read_text()


def of_example() -> str:
    """What the example's server has, with the test's origin, and with the test as a client that may purge."""
    server = EXAMPLE[EXAMPLE.index("header_filter_by_lua_block"):EXAMPLE.rindex("\n    }\n}")]
    return server.replace("http://127.0.0.1:3000", "http://unix:@folder@/origin:").replace("allow 127.0.0.1;", "allow unix:;")


# Locations whose origin fails or redirects. The collector runs after each redirect.
REDIRECTS = """
    location /failing/ {
        access_by_lua_block { pages:access() }
        proxy_pass http://unix:@folder@/origin:;
        proxy_intercept_errors on;
        error_page 502 /error-page;
    }
    location /failing/named/ {
        access_by_lua_block { pages:access() }
        proxy_pass http://unix:@folder@/origin:;
        proxy_intercept_errors on;
        error_page 502 = @other;
    }
    location /accelerated/ {
        access_by_lua_block { pages:access() }
        proxy_pass http://unix:@folder@/origin:;
    }
    location = /error-page {
        rewrite_by_lua_block { collectgarbage() }
        content_by_lua_block { ngx.header["Cache-Control"] = "max-age=3600" ngx.print("the error page") }
    }
    location @other {
        rewrite_by_lua_block { collectgarbage() }
        access_by_lua_block { pages:access() }
        content_by_lua_block { ngx.header["Cache-Control"] = "max-age=3600" ngx.print("from another server") }
    }
    location = /file {
        internal;
        rewrite_by_lua_block { collectgarbage() }
        content_by_lua_block { ngx.print("the file") }
    }
    location /forgotten/ {
        access_by_lua_block { pages:access() }
        proxy_pass http://unix:@folder@/origin:;
        proxy_intercept_errors on;
        error_page 502 /forgetting;
    }
    # It doesn't have the filters and the log of the server.
    location = /forgetting {
        internal;
        header_filter_by_lua_block { local _ }
        body_filter_by_lua_block { local _ }
        log_by_lua_block { local _ }
        content_by_lua_block { ngx.print("the error page") }
    }
    location = /is-free {
        content_by_lua_block {
            collectgarbage()
            local _, flight = cache:begin_fill("http://example.org/forgotten/page", { wait = 0 })
            ngx.print(tostring(flight ~= nil))
            if flight then
                flight:abandon()
            end
        }
    }
"""


class PageCache(Server):
    # With one worker, the collector of one request is that of all requests.
    workers = 1
    http = """
    init_by_lua_block {
        cache = assert(require("resty.eyewall").open("@folder@/volume", { size = "16M" }))
        pages = require("resty.eyewall.page_cache").new(cache, { wait = 60 })
    }
    """
    server = of_example() + REDIRECTS + """
    location = /put { content_by_lua_block { ngx.print(tostring(cache:put("http://example.org/foreign", "foreign"))) } }
    location = /pins { content_by_lua_block { ngx.print(cache:stats().pins) } }
    """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.gate = threading.Event()
        cls.origin = Origin(cls.folder / "origin", cls.answer)
        cls.addClassCleanup(cls.origin.end)

    @classmethod
    def answer(cls, path: str, fields):
        hour = ("Cache-Control", "max-age=3600")
        body = f"the body of {path}".encode()
        if path.startswith("/slow"):
            cls.gate.wait(60)
        if path.startswith(("/failing/", "/forgotten/")):
            return 502, [hour], body
        if path.startswith("/accelerated/"):
            return 200, [hour, ("X-Accel-Redirect", "/file")], body
        if path.startswith("/silent"):
            return 200, [], body
        if path.startswith("/private"):
            return 200, [("Cache-Control", "private, max-age=60")], body
        if path.startswith("/unreadable?"):
            return 200, [("Expires", formatdate(4102444800, usegmt=True)), ("Cache-Control", unquote(path[len("/unreadable?"):]))], body
        if path.startswith("/cookie"):
            return 200, [hour, ("Set-Cookie", "a=b")], body
        if path.startswith("/vary"):
            return 200, [hour, ("Vary", "Cookie")], body
        if path.startswith("/broken"):
            return 500, [hour], body
        if path.startswith("/gone"):
            return 404, [hour], body
        if path.startswith("/large"):
            return 200, [hour], b"x" * 2_000_000
        if path.startswith("/empty"):
            return 200, [hour], b""
        if path.startswith("/cut"):
            return 200, [hour, ("Content-Length", "100000")], body
        if path.startswith("/expires"):
            return 200, [("Expires", formatdate(4102444800, usegmt=True)), ("Age", "5")], body
        return 200, [hour, ("Surrogate-Key", "news home"), ("Link", "</a>"), ("Link", "</b>"), ("ETag", '"1"'),
                     ("X-Coding", fields.get("Accept-Encoding", "none"))], body

    def status_of(self, path: str, **fields: str) -> str:
        """The field Cache-Status of a request that gets the path's body."""
        response = self.ask(path, **fields)
        self.assertEqual(f"the body of {path}".encode(), response.body)
        return response.fields["Cache-Status"]

    def purge(self, path: str, **fields: str):
        response = self.ask(path, "PURGE", **fields)
        self.assertEqual((200, b"purged\n"), (response.status, response.body))

    def test_a_response_is_stored_whole(self):
        first, second = self.ask("/page?a=1", Accept_Encoding="gzip"), self.ask("/page?a=1")
        self.assertEqual("Eyewall; fwd=uri-miss; stored", first.fields["Cache-Status"])
        self.assertEqual("Eyewall; hit", second.fields["Cache-Status"])
        self.assertEqual((200, first.body), (second.status, second.body))
        self.assertEqual(["</a>", "</b>"], second.fields.get_all("Link"))
        self.assertEqual("none", second.fields["X-Coding"])
        self.assertEqual(str(len(second.body)), second.fields["Content-Length"])
        self.assertGreaterEqual(int(second.fields["Age"]), 0)
        self.assertEqual(1, self.origin.count("/page?a=1"))
        self.assertEqual("Eyewall; fwd=uri-miss; stored", self.status_of("/page?a=2"))

    def test_a_client_that_has_the_response_gets_304(self):
        self.ask("/etag")
        response = self.ask("/etag", If_None_Match='"1"')
        self.assertEqual((304, b""), (response.status, response.body))

    def test_other_statuses_and_lifetimes(self):
        for path, status in (("/gone", 404), ("/expires", 200), ("/empty", 200)):
            first, second = self.ask(path), self.ask(path)
            self.assertEqual((status, first.body, "Eyewall; hit"), (second.status, second.body, second.fields["Cache-Status"]))
        self.assertGreaterEqual(int(self.ask("/expires").fields["Age"]), 5)

    def test_responses_that_may_not_be_stored(self):
        for path in ("/silent", "/private", "/cookie", "/vary"):
            for _ in range(2):
                self.assertNotIn("hit", self.status_of(path))
            self.assertEqual(2, self.origin.count(path))
        for path in ("/broken", "/large"):
            bodies = {self.ask(path).body for _ in range(2)}
            self.assertEqual((1, 2), (len(bodies), self.origin.count(path)))

    def test_unreadable_lifetimes_count_as_none(self):
        for control in ("max-age=-1", "max-age=x", "max-age", "max-age=1.5", "s-maxage=x, max-age=60", "max-age="):
            path = "/unreadable?" + quote(control)
            for _ in range(2):
                self.assertEqual("Eyewall; fwd=uri-miss", self.status_of(path).replace("bypass", "uri-miss"))
            self.assertEqual(2, self.origin.count(path))
        for control in ('max-age="60"', "max-age=60 , public", "max-age=" + "9" * 400, "s-maxage=60, max-age=x"):
            path = "/unreadable?" + quote(control)
            self.assertEqual("Eyewall; fwd=uri-miss; stored", self.status_of(path))
            self.assertEqual("Eyewall; hit", self.status_of(path))

    def test_no_response_to_a_request_with_no_store_is_stored(self):
        for control in ("no-store", "max-age=0, No-Store"):
            self.assertEqual("Eyewall; fwd=bypass", self.status_of("/no-store", Cache_Control=control))
        self.assertEqual("Eyewall; fwd=uri-miss; stored", self.status_of("/no-store"))
        self.assertEqual("Eyewall; hit", self.status_of("/no-store", Cache_Control="no-store"))

    def test_a_body_that_is_cut_is_not_stored(self):
        for number in (1, 2):
            try:
                self.ask("/cut")
            except Exception:  # noqa: BLE001 - the body ends before its length
                pass
            wait_for(lambda: self.origin.count("/cut") == number, "the origin was asked")

    def test_requests_that_the_cache_has_no_part_in(self):
        self.ask("/parts")
        self.assertEqual("Eyewall; fwd=bypass", self.status_of("/parts", Authorization="Basic eA=="))
        posted = self.ask("/parts", "POST", "text")
        self.assertEqual("Eyewall; fwd=bypass", posted.fields["Cache-Status"])
        self.assertEqual("Eyewall; fwd=bypass", self.status_of("/other-parts", Range="bytes=0-1"))
        self.assertEqual("Eyewall; fwd=uri-miss; stored", self.status_of("/other-parts"))

    def test_concurrent_requests_cost_the_origin_one(self):
        type(self).gate = threading.Event()
        asked = []
        asking = threading.Thread(target=lambda: asked.extend(self.at_once(20, lambda: self.status_of("/slow"))))
        asking.start()
        try:
            wait_for(lambda: self.origin.count("/slow"), "the origin is asked")
            # Others are served meanwhile.
            for number in range(5):
                self.status_of(f"/meanwhile?{number}")
        finally:
            self.gate.set()
            asking.join()
        self.assertEqual(1, self.origin.count("/slow"))
        self.assertEqual(["Eyewall; fwd=uri-miss; stored"] + ["Eyewall; hit"] * 19, sorted(asked))

    def test_a_request_whose_client_goes_away_does_not_hold_up_the_next(self):
        type(self).gate = threading.Event()
        gone = Connection(self.folder / "socket")
        gone.request("GET", "/slow/gone")
        wait_for(lambda: self.origin.count("/slow/gone"), "the origin is asked")
        gone.sock.shutdown(2)
        gone.close()
        self.gate.set()
        self.assertIn(self.status_of("/slow/gone"), ("Eyewall; hit", "Eyewall; fwd=uri-miss; stored"))

    def test_purges_of_an_address_of_a_prefix_and_of_tags(self):
        stored, hit = "Eyewall; fwd=uri-miss; stored", "Eyewall; hit"

        def states() -> list[str]:
            return [self.status_of(path) for path in ("/shop/1", "/shop/2", "/blog/1")]

        self.assertEqual([stored] * 3, states())
        self.assertEqual([hit] * 3, states())
        self.purge("/shop/1")
        self.assertEqual([stored, hit, hit], states())
        self.purge("/shop/.*")
        self.assertEqual([stored, stored, hit], states())
        self.purge("/", Xkey="absent")
        self.assertEqual([hit] * 3, states())
        self.purge("/", Xkey="absent, news")
        self.assertEqual([stored] * 3, states())
        self.purge("/", Surrogate_Key="home", Host="another.example")
        self.assertEqual([hit] * 3, states())
        self.purge("/shop/1", Fastly_Soft_Purge="1")
        wait_for(lambda: self.status_of("/shop/1") == hit and self.origin.count("/shop/1") == 5, "a request renews the stale response")

    def test_a_purge_covers_a_response_on_its_way(self):
        type(self).gate = threading.Event()
        asking = threading.Thread(target=lambda: self.status_of("/slow/purged"))
        asking.start()
        wait_for(lambda: self.origin.count("/slow/purged"), "the origin is asked")
        self.purge("/slow/purged")
        self.gate.set()
        asking.join()
        self.assertEqual("Eyewall; fwd=uri-miss; stored", self.status_of("/slow/purged"))

    def test_an_error_page_ends_the_fill(self):
        for number in (1, 2):
            response = self.ask("/failing/page")
            self.assertEqual((502, b"the error page"), (response.status, response.body))
            self.assertEqual("Eyewall; fwd=uri-miss", response.fields["Cache-Status"])
            self.assertEqual(number, self.origin.count("/failing/page"))

    def test_a_response_after_an_internal_redirect_is_that_of_the_address(self):
        for path, body in (("/failing/named/page", b"from another server"), ("/accelerated/page", b"the file")):
            states = []
            for _ in range(2):
                response = self.ask(path)
                self.assertEqual((200, body), (response.status, response.body))
                states.append(response.fields["Cache-Status"])
            self.assertEqual(["Eyewall; fwd=uri-miss; stored", "Eyewall; hit"], states)
            self.assertEqual(1, self.origin.count(path))

    def test_an_internal_redirect_of_a_post_begins_no_fill(self):
        for _ in range(2):
            response = self.ask("/failing/named/post", "POST", "text")
            self.assertEqual((200, "Eyewall; fwd=bypass"), (response.status, response.fields["Cache-Status"]))
        self.assertEqual("Eyewall; fwd=uri-miss; stored", self.ask("/failing/named/post").fields["Cache-Status"])

    def test_a_request_that_ends_without_log_leaves_its_fill_to_the_collector(self):
        self.assertEqual(b"the error page", self.ask("/forgotten/page").body)
        wait_for(lambda: self.ask("/is-free").body == b"true", "the fill has ended")

    def test_a_request_does_not_take_over_the_fill_of_one_that_ended_without_log(self):
        self.assertEqual(b"the error page", self.ask("/forgotten/other").body)
        response = self.ask("/error-page")
        self.assertEqual((200, "Eyewall; fwd=bypass"), (response.status, response.fields["Cache-Status"]))

    def test_an_entry_of_another_program_is_no_response(self):
        self.ask("/put")
        self.assertEqual("Eyewall; fwd=bypass", self.status_of("/foreign"))

    def test_nothing_is_held_at_the_end(self):
        self.status_of("/held")
        self.status_of("/held")
        # nginx releases a hit after it has sent the body.
        wait_for(lambda: self.ask("/pins").body == b"0", "nothing is held")


if __name__ == "__main__":
    unittest.main()
