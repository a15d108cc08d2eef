"""What observes a server while it is measured: a Prometheus that scrapes each second, and a browser with the dashboard open."""
import contextlib
import http.client
import socket
import threading
import urllib.request

from servers import Failed

SCRAPE_SECONDS = 1
PATIENCE_SECONDS = 30


class _Administration(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class _Observer(threading.Thread):
    """Looks until it is told to end. Fails afterwards if it has seen nothing."""

    def __init__(self, what):
        super().__init__(daemon=True)
        self.what, self.seen, self.ends, self.error = what, 0, threading.Event(), None

    def run(self):
        try:
            self.look()
        except (OSError, http.client.HTTPException, Failed) as error:
            self.error = error

    def finish(self):
        self.ends.set()
        self.join()
        if self.error or self.seen == 0:
            raise Failed(f"{self.what}: {self.error or 'nothing was seen'}")


class Scraper(_Observer):
    def __init__(self, port):
        super().__init__("metrics")
        self.url = f"http://127.0.0.1:{port}/metrics"

    def look(self):
        while not self.ends.is_set():
            with urllib.request.urlopen(self.url, timeout=PATIENCE_SECONDS) as response:
                if b"eyewall_requests_total" not in response.read():
                    raise Failed(f"{self.url} has no counts of requests")
            self.seen += 1
            self.ends.wait(SCRAPE_SECONDS)


class Viewer(_Observer):
    def __init__(self, path):
        super().__init__("dashboard")
        self.path = path

    def look(self):
        with contextlib.closing(_Administration(self.path)) as administration:
            administration.request("GET", "/dashboard/events")
            response = administration.getresponse()
            if response.status != 200:
                raise Failed(f"/dashboard/events answers with {response.status}")
            while not self.ends.is_set():
                if not response.readline():
                    raise Failed("/dashboard/events ended")
                self.seen += 1


@contextlib.contextmanager
def watching(server):
    """Observes a server of `contenders.start_eyewall_observed` in this context."""
    observers = [Scraper(server.metrics_port), Viewer(server.administration)]
    for observer in observers:
        observer.start()
    try:
        yield
    finally:
        for observer in observers:
            observer.ends.set()
    for observer in observers:
        observer.finish()
