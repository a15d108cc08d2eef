"""The servers that are compared: how each is started, and what its processes use."""
import os
import pathlib
import shutil
import signal
import socket
import string
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
VOLUME_SIZE = "256M"
START_SECONDS = 20
STOP_SECONDS = 15
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """What could not be done, in words for people."""


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
    """A running server on one core, with all processes that it started."""

    def __init__(self, name, command, scratch, core, port=None):
        self.name = name
        self.said = open(scratch / f"{name}.out", "wb")
        command = ["taskset", "--cpu-list", str(core), *map(str, command)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self.said if port else subprocess.PIPE, stderr=self.said,
            start_new_session=True,
        )
        try:
            self.port = port or self._told_port()
            self._wait_until_it_listens()
        except BaseException:
            self.stop()
            raise
        self.url = f"http://127.0.0.1:{self.port}"

    def _told_port(self):
        """The port that a server says on its first line that it took."""
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
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)

    def _last_words(self):
        self.said.flush()
        words = pathlib.Path(self.said.name).read_text(errors="replace").strip()
        return words[-2000:] or "it said nothing"

    def pids(self):
        """The server's first process, and all that descend from it."""
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
        """User and system time of all its processes that live, in seconds."""
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
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self.said.close()


def _stat(pid):
    """The fields of /proc/PID/stat after the name, which may hold blanks; None where the process is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return None


class Ground:
    """What the servers are started with."""

    def __init__(self, scratch, core, origin, eyewall, descriptors):
        self.scratch, self.core, self.origin, self.eyewall = scratch, core, origin, eyewall
        self.descriptors = descriptors

    def template(self, file, port, **more):
        """A template of this folder, filled in; its path."""
        host, origin_port = self.origin.split("//", 1)[1].split(":")
        is_root = os.geteuid() == 0
        values = {
            "scratch": self.scratch, "port": port, "origin": f"{host}:{origin_port}", "origin_host": host,
            "origin_port": origin_port, "descriptors": self.descriptors,
            # Who is root has to name another for the workers; for all others the servers take no notice.
            "user": "www-data" if is_root else "nobody", "group": "www-data" if is_root else "nogroup",
            "apache_modules": "/usr/lib/apache2/modules", **more,
        }
        text = (HERE / file).read_text()
        # nginx's own variables have no braces, Apache's none of these names.
        target = self.scratch / f"{port}-{file}"
        target.write_text(string.Template(text).safe_substitute(values))
        return target

    def folder(self, name):
        folder = self.scratch / name
        folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder, "www-data", "www-data")
        return folder


def start_eyewall(ground):
    command = [ground.eyewall, "serve", "--listen", "127.0.0.1:0", "--cache", ground.scratch / "volume.eyewall",
               "--size", VOLUME_SIZE, "--origin", ground.origin]
    return Server("eyewall", command, ground.scratch, ground.core)


def start_nginx(ground, name="nginx", nopush="off"):
    port = free_port()
    ground.folder(f"{name}-cache")
    template = ground.template("nginx.conf", port, name=name, nopush=nopush)
    return Server(name, [program("nginx"), "-p", ground.scratch, "-c", template], ground.scratch, ground.core, port)


def start_nginx_nopush(ground):
    return start_nginx(ground, "nginx-nopush", "on")


def start_varnish(ground):
    port = free_port()
    command = [program("varnishd"), "-F", "-j", "none", "-n", ground.scratch / "varnish",
               "-a", f"127.0.0.1:{port}", "-f", ground.template("varnish.vcl", port), "-s", "malloc,256m",
               "-p", "thread_pools=1", "-p", "listen_depth=4096"]
    return Server("varnish", command, ground.scratch, ground.core, port)


def start_apache(ground):
    port = free_port()
    ground.folder("apache-cache")
    command = [program("apache2"), "-DFOREGROUND", "-f", ground.template("apache.conf", port)]
    return Server("apache", command, ground.scratch, ground.core, port)


START = {
    "eyewall": start_eyewall,
    "nginx": start_nginx,
    "nginx-nopush": start_nginx_nopush,
    "varnish": start_varnish,
    "apache": start_apache,
}


def versions(eyewall):
    """What each program says that it is."""
    def first_line(*command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout.splitlines()[0].strip() if done.stdout else "unknown"

    return {
        "eyewall": first_line(eyewall, "--version"),
        "nginx": first_line(program("nginx"), "-v"),
        "varnish": first_line(program("varnishd"), "-V"),
        "apache": first_line(program("apache2"), "-v"),
        "wrk": first_line(program("wrk"), "-v"),
        "ab": first_line(program("ab"), "-V"),
    }
