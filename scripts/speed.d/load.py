"""The programs that ask: our client, ab, and the slow clients; all on the client's core."""
import csv
import json
import pathlib
import re
import subprocess
import sys

from servers import Failed, program

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = 50
PERCENTILES = (50, 66, 75, 80, 90, 95, 98, 99, 100)


def pinned(core, *command):
    return ["taskset", "--cpu-list", str(core), *map(str, command)]


class Client:
    """`bench-http load`, on its core."""

    def __init__(self, core, program):
        self.core, self.program = core, program

    def measure(self, url, reference, seconds, connections=CONNECTIONS):
        """What some kept connections get in some seconds, of answers with the body of a file: the line that it prints."""
        command = pinned(self.core, self.program, "load", "--reference", reference, "--connections", connections,
                         "--seconds", seconds, url)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"the client gave up on {url}: {done.stderr[-500:]}")
        return json.loads(done.stdout)


def ab(core, url, size, requests, concurrency, table):
    """Times of requests with a connection each: milliseconds by percentile, and how many failed: weren't answered, not by
    200, or not by the object's size.

    None where so much failed that ab gave up.
    """
    table.unlink(missing_ok=True)
    command = pinned(core, program("ab"), "-q", "-r", "-l", "-s", 60, "-n", requests, "-c", concurrency, "-e", table, url)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not table.exists():
        return None

    def count(label):
        found = re.search(rf"^{label}:\s+(\d+)", done.stdout, re.MULTILINE)
        return int(found[1]) if found else 0

    with open(table, newline="") as rows:
        times = {int(row[0]): float(row[1]) for row in csv.reader(rows) if row[0].isdigit()}
    longest = re.search(r"^\s+100%\s+(\d+)", done.stdout, re.MULTILINE)
    if longest:
        times[100] = max(float(longest[1]), times.get(99, 0.0))
    # The body of a failure counts as well; what ab knows of failures says how many there are at least.
    told = count("Failed requests") + count("Non-2xx responses") + requests - count("Complete requests")
    failed = max(told, requests - count("HTML transferred") // size)
    return {"times": {p: times[p] for p in PERCENTILES}, "failed": failed}


class SlowClients:
    """Many clients that read slowly while this is entered."""

    def __init__(self, core, server, path, count):
        command = pinned(core, sys.executable, HERE / "slow_clients.py", "127.0.0.1", server.port, path, count)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lost = None

    def __enter__(self):
        line = self.process.stdout.readline().strip()
        if not line.startswith("ready"):
            self.__exit__()
            raise Failed(f"the slow clients {line or 'said nothing'}")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        words = self.process.stdout.read().split()
        self.process.wait()
        self.process.stdout.close()
        self.lost = int(words[1]) if len(words) == 2 and words[0] == "lost" else None
