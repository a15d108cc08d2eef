"""The client programs, on the client's core: `bench-http load`, and clients that read slowly."""
import json
import pathlib
import subprocess
import sys

from servers import Failed

HERE = pathlib.Path(__file__).resolve().parent
# Longer than any run with a given number of requests takes.
PATIENCE_SECONDS = 60


def pinned(core, *command):
    return ["taskset", "--cpu-list", str(core), *map(str, command)]


class Client:
    """`bench-http load`, on its core. The result is the line that it prints. Every response must have the body of a file."""

    def __init__(self, core, program):
        self.core, self.program = core, program
        # The root certificate of servers that speak TLS, once there is one.
        self.root = None

    def _ask(self, url, reference, *options):
        trust = ["--ca", self.root] if url.startswith("https:") else []
        command = pinned(self.core, self.program, "load", "--reference", reference, *trust, *options, url)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"the client gave up on {url}: {done.stderr.strip()[-500:]}")
        return json.loads(done.stdout)

    def window(self, url, reference, seconds, connections, names=None, at_most=None, finishes=False):
        """The results of some persistent connections in some seconds, or with so many requests. With {} in the path, they request so many names in turn,
        which may have bodies of their own. If `finishes`, requests under way at the end of the time count, too."""
        numbers = [] if names is None else ["--names", names]
        end = [] if at_most is None else ["--at-most", at_most]
        end += ["--finish", PATIENCE_SECONDS] if finishes else []
        return self._ask(url, reference, "--connections", connections, "--seconds", seconds, *numbers, *end)

    def burst(self, url, reference, requests, concurrency):
        """The results of requests with a connection each, some of them at a time."""
        return self._ask(url, reference, "--anew", "--connections", concurrency, "--at-most", requests,
                         "--seconds", PATIENCE_SECONDS)

    def handshakes(self, url, reference, seconds, connections, resumes, at_most=None):
        """What new connections get in some seconds, each with a handshake of its own, full or of an earlier session."""
        options = ["--resume"] if resumes else []
        options += [] if at_most is None else ["--at-most", at_most]
        return self._ask(url, reference, "--anew", "--connections", connections, "--seconds", seconds, *options)

    def lap(self, url, reference, requests, connections, names):
        """Requests names in turn, so many times, over persistent connections. Each request must get a response."""
        measured = self._ask(url, reference, "--connections", connections, "--at-most", requests, "--names", names,
                             "--seconds", PATIENCE_SECONDS)
        if measured["requests"] != requests:
            raise Failed(f"{url}: of {requests} requests {measured['requests']} were answered, the others {measured['errors']}")


class SlowClients:
    """Many clients that read slowly while this context is active."""

    def __init__(self, core, server, path, count):
        command = pinned(core, sys.executable, HERE / "slow_clients.py", "127.0.0.1", server.port, path, count)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lost = None

    def __enter__(self):
        try:
            line = self.process.stdout.readline().strip()
            if not line.startswith("ready"):
                raise Failed(f"the slow clients {line or 'said nothing'}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        words = self.process.stdout.read().split()
        self.process.wait()
        self.process.stdout.close()
        self.lost = int(words[1]) if len(words) == 2 and words[0] == "lost" else None
