"""Servers that a script starts, and stops with all their processes."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

START_SECONDS = 60
STOP_SECONDS = 15
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """An error, as a message for people."""


def program(name):
    """The path of a program; those of servers are not on every user's PATH."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise Failed(f"{name} is missing")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running server, on one core if it is given one, with all processes that it started.

    It listens on the port given, on a Unix socket that is a path, or else on the port that its first line names.
    """

    def __init__(self, name, command, scratch, core=None, port=None, environment=None, scheme="http"):
        self.name = name
        self.said = open(scratch / f"{name}.out", "wb")
        on_core = [] if core is None else ["taskset", "--cpu-list", str(core)]
        self.process = subprocess.Popen(
            [*on_core, *map(str, command)], stdin=subprocess.PIPE, stdout=self.said if port else subprocess.PIPE,
            stderr=self.said, start_new_session=True, env=None if environment is None else os.environ | environment,
        )
        try:
            self.port = port or self._told_port()
            self._wait_until_it_listens()
        except BaseException:
            self.stop()
            raise
        # Certificates are for a name.
        host = "localhost" if scheme == "https" else "127.0.0.1"
        self.url = f"{scheme}://{host}:{self.port}" if isinstance(self.port, int) else None

    def _told_port(self):
        """The port that a server prints on its first line."""
        line = self.process.stdout.readline().decode().strip()
        if ":" not in line:
            raise Failed(f"{self.name} did not start: {self._last_words()}")
        return int(line.rstrip("/").rsplit(":", 1)[1])

    def _wait_until_it_listens(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{self.name} did not start: {self._last_words()}")
            try:
                self._connect()
                return
            except OSError:
                time.sleep(0.05)

    def _connect(self):
        if isinstance(self.port, int):
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(str(self.port))

    def _last_words(self):
        self.said.flush()
        words = pathlib.Path(self.said.name).read_text(errors="replace").strip()
        return words[-2000:] or "it said nothing"

    def pids(self):
        """The server's first process and its descendants."""
        children = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                fields = _stat(entry.name)
                if fields:
                    children.setdefault(int(fields[1]), []).append(int(entry.name))
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            todo += children.get(pid, [])
        return found

    def cpu_seconds(self):
        """User and system time of all its live processes, in seconds."""
        stats = [_stat(pid) for pid in self.pids()]
        return sum(int(fields[11]) + int(fields[12]) for fields in stats if fields) / TICKS_A_SECOND

    def anonymous_bytes(self):
        """Anonymous memory of all its processes: neither maps of files nor shared memory."""
        total = 0
        for pid in self.pids():
            try:
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            total += sum(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon:"))
        return total

    def stop(self):
        self.process.stdin.close()
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # It may have left workers in its process group.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if self.process.stdout:
            self.process.stdout.close()
        self.said.close()


def _stat(pid):
    """The fields of /proc/PID/stat after the name, which may contain blanks; None if the process is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return None
