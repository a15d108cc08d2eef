"""A server with a dashboard, its origin, and clients that ask for all kinds of things."""
import http.client
import http.server
import random
import threading
import time

from servers import Server, free_port
from webdriver import Driver

TOKEN = "a-token-of-the-test"
CONFIGURATION = """
[server]
listen = ["127.0.0.1:{port}"]
workers = 2
[server.admin]
listen = "127.0.0.1:{admin}"
token_file = "{scratch}/token"
read_without_token = true
hosts = ["dashboard.test"]
[cache]
size = "8M"
[[site]]
hosts = ["www.example.org"]
origins = ["http://127.0.0.1:{origin}"]
cache = {{ negative_ttl = {{ 404 = "30s" }} }}
key = {{ strip_query = ["utm_*"] }}
[[site.rule]]
name = "basket"
prefix = ["/basket"]
bypass = true
[[site]]
hosts = ["shop.example.org"]
origins = ["http://127.0.0.1:{origin}", "http://127.0.0.1:{nobody}"]
[[site]]
hosts = ["docs.example.org"]
origins = ["http://127.0.0.1:{origin}"]
"""


class Answers(http.server.BaseHTTPRequestHandler):
    """An origin of pages, pictures and errors."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.split("?")[0]
        fields, status, size = {"Cache-Control": "max-age=600", "Xkey": "all"}, 200, 1500 + len(path) * 700 % 9000
        time.sleep(random.choice((0.001, 0.004, 0.015, 0.04)))
        if path.startswith("/basket"):
            fields = {"Cache-Control": "no-store"}
        elif path.startswith("/news"):
            fields = {"Cache-Control": "max-age=1", "ETag": '"one"'}
        elif path.startswith("/live"):
            fields = {"Cache-Control": "max-age=0, stale-while-revalidate=600"}
        elif path.startswith("/large"):
            size = 120_000
        elif path.startswith("/gone"):
            status = 404
        elif path.startswith("/broken"):
            status = 500
        if self.headers.get("If-None-Match") == '"one"' and path.startswith("/news"):
            status, size = 304, 0
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(size))
            self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"x" * size)

    def log_message(self, *_):
        pass


class Load(threading.Thread):
    """Clients that ask until they are stopped, and count."""

    KINDS = (("www.example.org", "/page/{}", 40, 60), ("www.example.org", "/news/{}", 6, 8), ("www.example.org", "/live/{}", 4, 6),
             ("www.example.org", "/basket?of={}", 50, 3), ("www.example.org", "/gone/{}", 9, 3), ("shop.example.org", "/item/{}", 400, 25),
             ("shop.example.org", "/large/{}", 90, 5), ("shop.example.org", "/search?q={}", 100_000, 4), ("docs.example.org", "/guide/{}", 30, 20),
             ("docs.example.org", "/broken/{}", 3, 1), ("unknown.example.org", "/{}", 5, 1))

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.count, self.bytes, self.is_stopped = port, 0, 0, False
        self.pause = 0.004

    def run(self):
        chance = random.Random(7)
        weights = [kind[3] for kind in self.KINDS]
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        while not self.is_stopped:
            host, path, most, _ = chance.choices(self.KINDS, weights)[0]
            # Some are asked for much more often than others.
            number = int(most * chance.random() ** 3)
            connection.request("GET", path.format(number), headers={"Host": host, "X-Mixed": "yes"})
            self.bytes += len(connection.getresponse().read())
            self.count += 1
            time.sleep(self.pause * chance.random())
        connection.close()


class Ground:
    def __init__(self, eyewall, scratch, pictures, running):
        self.scratch, self.pictures = scratch, pictures
        self.origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.origin.daemon_threads = True
        threading.Thread(target=self.origin.serve_forever, daemon=True).start()
        token = scratch / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        self.port, self.admin = free_port(), free_port()
        text = CONFIGURATION.format(port=self.port, admin=self.admin, origin=self.origin.server_port, nobody=free_port(), scratch=scratch)
        (scratch / "eyewall.toml").write_text(text)
        running.append(Server("eyewall", [eyewall, "serve", "--config", scratch / "eyewall.toml"], scratch, port=self.port))
        self.driver = Driver(scratch, running)
        self.url = "http://dashboard.test/dashboard"

    def browser(self):
        return self.driver.browser("dashboard.test", f"127.0.0.1:{self.admin}")

    def load(self, seconds, clients=3):
        """Asks for this time. Returns the number of requests and of bytes."""
        loads = self.begin(clients)
        time.sleep(seconds)
        return self.end(loads)

    def begin(self, clients):
        loads = [Load(self.port) for _ in range(clients)]
        for load in loads:
            load.start()
        return loads

    def end(self, loads):
        for load in loads:
            load.is_stopped = True
        for load in loads:
            load.join()
        return sum(load.count for load in loads), sum(load.bytes for load in loads)

    def get(self, host, target):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", target, headers={"Host": host, "X-Mixed": "yes"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.headers.get("Cache-Status", "")
