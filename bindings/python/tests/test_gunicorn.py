"""A real gunicorn: its workers share what one of them made, whether they opened the volume or inherited it, and survive
when one is killed.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable

WORKERS = 3
PATIENCE_SECONDS = 60

# `made` gets a line with the path and the process for each page that is made. A page below /held is made when
# `let_go` exists.
APPLICATION = """
import os
import eyewall

folder = os.path.dirname(__file__)
cache = eyewall.Cache(f"{folder}/volume", size="8M")


@cache.memoize(ttl=600, tag="pages")
def page(path):
    with open(f"{folder}/made", "a") as made:
        made.write(f"{path} {os.getpid()}\\n")
    if path.startswith("/held"):
        with open(f"{folder}/let_go") as let_go:
            let_go.read()
    return f"page {path}"


def application(environ, start_response):
    path = environ["PATH_INFO"]
    body = str(os.getpid()) if path == "/process" else page(path)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [body.encode()]
"""


class Unix(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_SECONDS)
        self.sock.connect(self.path)


@unittest.skipUnless(importlib.util.find_spec("gunicorn"), "gunicorn isn't installed")
class Gunicorn(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="eyewall-gunicorn-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(f"{self.folder}/pages.py", "w") as site:
            site.write(APPLICATION)
        os.mkfifo(f"{self.folder}/let_go")

    def start(self, *options: str) -> None:
        command = [sys.executable, "-m", "gunicorn", "--workers", str(WORKERS), "--bind", f"unix:{self.folder}/socket"]
        command += ["--worker-tmp-dir", self.folder, "--timeout", str(PATIENCE_SECONDS), "--graceful-timeout", "5", *options]
        with open(f"{self.folder}/log", "w") as log:
            self.server = subprocess.Popen(
                [*command, "--chdir", self.folder, "pages:application"], stdout=log, stderr=log, env={**os.environ, "HOME": self.folder}
            )
        self.addCleanup(self.stop)
        self.until(lambda: os.path.exists(f"{self.folder}/socket"))

    def stop(self) -> None:
        self.server.terminate()
        try:
            self.server.wait(PATIENCE_SECONDS)
        finally:
            self.server.kill()
            self.server.wait()

    def log(self) -> str:
        with open(f"{self.folder}/log") as log:
            return log.read()

    def until(self, is_so: Callable[[], object]) -> None:
        """Fails if that doesn't come."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            self.assertIsNone(self.server.poll(), self.log())
            self.assertLess(time.monotonic(), deadline, self.log())
            time.sleep(0.01)

    def got(self, path: str) -> str:
        connection = Unix(f"{self.folder}/socket")
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200, self.log())
            return answer.read().decode()
        finally:
            connection.close()

    def made(self) -> list[list[str]]:
        """Which pages were made, and by which process."""
        try:
            with open(f"{self.folder}/made") as made:
                return [line.split() for line in made]
        except FileNotFoundError:
            return []

    def makers(self, path: str) -> list[int]:
        return [int(maker) for made, maker in self.made() if made == path]

    def let_go(self) -> None:
        with open(f"{self.folder}/let_go", "w") as let_go:
            let_go.write("go")

    def check(self, *options: str) -> None:
        self.start(*options)
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            wanted = [f"/{number}" for number in range(40)] * 4
            self.assertEqual(list(clients.map(self.got, wanted)), [f"page {path}" for path in wanted])
            self.assertEqual(sorted(made for made, _ in self.made()), sorted(set(wanted)), "each was made once")

            # One worker makes the page, another waits for it, and the third continues.
            held = [clients.submit(self.got, "/held") for _ in range(2)]
            self.until(lambda: self.makers("/held"))
            [maker] = self.makers("/held")
            self.assertNotEqual(int(self.got("/process")), maker)
            self.assertEqual(self.got("/7"), "page /7")
            self.let_go()
            self.assertEqual([answer.result() for answer in held], ["page /held"] * 2)
            self.assertEqual(self.makers("/held"), [maker])

            # When a worker is killed while it makes a page, another one makes it.
            killed = clients.submit(self.got, "/held/killed")
            self.until(lambda: self.makers("/held/killed"))
            waits = clients.submit(self.got, "/held/killed")
            [maker] = self.makers("/held/killed")
            os.kill(maker, signal.SIGKILL)
            with self.assertRaises((http.client.HTTPException, OSError)):
                killed.result()
            self.until(lambda: len(self.makers("/held/killed")) == 2)
            self.let_go()
            self.assertEqual(waits.result(), "page /held/killed")
            self.assertNotIn(maker, self.makers("/held/killed")[1:])

            # The new worker finds the old entries.
            makers = self.made()
            self.assertEqual(list(clients.map(self.got, wanted)), [f"page {path}" for path in wanted])
            self.assertEqual(self.made(), makers)
        self.server.terminate()
        self.assertEqual(self.server.wait(PATIENCE_SECONDS), 0, self.log())

    def test_workers_that_open_the_volume_each(self) -> None:
        self.check()

    def test_workers_that_inherit_the_volume(self) -> None:
        self.check("--preload")


if __name__ == "__main__":
    unittest.main()
