"""One case of a workload during its run: the contenders, the origin, the client, and the lines of the answer."""
import contextlib
import http.client
import os
import pathlib
import re
import resource
import shutil
import ssl
import subprocess
import tempfile
import urllib.request

import load
from contenders import Ground, start_origin
from servers import Failed

# The share of requests for hits that a server other than ours may fail: one may close a connection at the wrong moment.
FAILED_SHARE_MAX = 0.001
# If the client uses this share of its core, it is the limit.
BOUND_PERCENT = 90
# Errors that end only a server's turn.
ITS_FAULT = (Failed, OSError, http.client.HTTPException)
UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20}


def bytes_of(words):
    """The bytes of a size in a definition, such as 9,689 B or 1 MB."""
    found = re.fullmatch(r"([\d,]+) (B|KB|MB)", words)
    if found is None:
        raise Failed(f"{words!r} is no size; one is like 9,689 B, 100 KB or 1 MB")
    return int(found[1].replace(",", "")) * UNITS[found[2]]


class Stage:
    """The environment of the procedures. `tell` gets the lines of an answer, one object each."""

    def __init__(self, request, case, contenders, programs, tell):
        self.case, self.settings = case, request["settings"]
        self.repetitions, self.tell, self.programs = request["repetitions"], tell, programs
        self.seed = request.get("seed")
        self.contenders = {name: contenders[name] for name in request["stores"]}
        self.scratch_parent = request["scratch"]["disk"]
        self.client_shares, self.noted = {}, set()
        self.running, self.folders = [], []
        # The folder for servers of files, after a procedure has made it.
        self.files = None
        # Certificates of servers that speak TLS, once a procedure has made them.
        self.certificates = None
        self.words = f"{request['workload']} {', '.join(map(str, self.case.values()))}".strip()

    def __enter__(self):
        self.server_core, client_core = _two_cores()
        self.descriptors = _raise_descriptors()
        self.client = load.Client(client_core, self.programs.bench_http())
        try:
            self.scratch = self._scratch()
            ground = Ground(self.scratch, client_core, None, self.programs, self.descriptors)
            self.origin = start_origin(ground)
            self.running.append(self.origin)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # Also stops the processes that a signal kept from being stopped in their turn. A second signal is ignored.
        while self.running:
            self.running[-1].stop()
            self.running.pop()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def _scratch(self):
        """A directory that is removed with the stage."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="eyewall-web.", dir=self.scratch_parent))
        self.folders.append(folder)
        # If root starts a server, its workers run as another user.
        folder.chmod(0o755)
        return folder

    @contextlib.contextmanager
    def started(self, store):
        """A contender with an empty cache. Afterwards it stops, and its files are removed."""
        scratch = self._scratch()
        ground = Ground(scratch, self.server_core, self.origin.url, self.programs, self.descriptors, self.files, self.certificates)
        try:
            server = self.contenders[store].start(ground)
            self.running.append(server)
            try:
                yield server
            finally:
                server.stop()
                self.running.remove(server)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @contextlib.contextmanager
    def all_started(self):
        """All contenders at once, by name, without those that fail to start."""
        with contextlib.ExitStack() as stack:
            servers = {}
            for store in self.contenders:
                with self.its_turn(store):
                    servers[store] = stack.enter_context(self.started(store))
            yield servers

    def ready(self, servers, prepare):
        """The servers for which the preparation succeeded."""
        found = {}
        for store, server in servers.items():
            with self.its_turn(store):
                prepare(server)
                found[store] = server
        return found

    @contextlib.contextmanager
    def its_turn(self, store):
        """If the work in this context fails, a note names the store, and only this work ends."""
        try:
            yield
        except ITS_FAULT as error:
            self.note(f"{store}: {error}")

    def turns(self, servers):
        """Each server in each repetition, one after the other, as repetition, store and server."""
        for repetition in self.repetitions:
            for store in servers:
                self.tell({"progress": f"{self.words}: {store}, {repetition} of {max(self.repetitions)}"})
                yield repetition, store

    def note(self, words):
        words = f"{self.words}: {words}"
        if words not in self.noted:
            self.noted.add(words)
            self.tell({"note": words})

    def sample(self, store, repetition, **values):
        for measure, value in values.items():
            self.tell({"sample": {"store": store, "measure": measure, "case": self.case, "repetition": repetition, "value": value}})

    def histogram(self, store, repetition, measure, measured):
        if measured["buckets"]:
            self.tell({"histogram": {"store": store, "measure": measure, "case": self.case, "repetition": repetition,
                                     "buckets": measured["buckets"]}})

    def fetch(self, url):
        trust = ssl.create_default_context(cafile=self.client.root) if url.startswith("https:") else None
        with urllib.request.urlopen(url, timeout=30, context=trust) as response:
            return response.read()

    def asked(self, path, origin=None):
        """The number of requests for a path at the origin."""
        return int(self.fetch(f"{(origin or self.origin).url}/asked{path}"))

    def reference(self, bytes_):
        """Makes a file with the body of an object of so many bytes."""
        file = self.scratch / f"reference-{bytes_}"
        if not file.exists():
            file.write_bytes(self.fetch(f"{self.origin.url}/page/{bytes_}/reference"))
        return file

    def fill(self, server, path, bytes_):
        """Puts an object into a server's cache, and checks that it is the origin's."""
        expected = self.reference(bytes_).read_bytes()
        for _ in range(3):
            if self.fetch(server.url + path) != expected:
                raise Failed(f"{path} is answered by other bytes than the origin's")

    def make_certificates(self):
        """Makes a root that the client trusts, and a certificate of it for the servers, which are called localhost."""
        self.certificates = self._scratch()
        subprocess.run([self.programs.bench_http(), "certificate", self.certificates], check=True)
        self.client.root = self.certificates / "ca.pem"

    def window(self, server, path, reference, connections, names=None, seconds=None, finishes=False):
        """The client's results, with the server's use of its core. Every response must have the body of a file."""
        return self._with_cores(server, path, lambda: self.client.window(
            server.url + path, reference, seconds or self.settings["seconds"], connections, names, self.settings.get("at_most"), finishes))

    def handshakes(self, server, path, reference, connections, resumes):
        """The same for connections that each carry one request."""
        return self._with_cores(server, path, lambda: self.client.handshakes(
            server.url + path, reference, self.settings["seconds"], connections, resumes, self.settings.get("at_most")))

    def _with_cores(self, server, path, measure):
        cpu = server.cpu_seconds()
        measured = measure()
        measured["server_micros"] = (server.cpu_seconds() - cpu) * 1e6
        measured["failed"] = sum(measured["errors"].values())
        if measured["requests"] == 0:
            raise Failed(f"{path}: nothing was answered, {measured['errors']}")
        return measured

    def sound(self, store, path, measured):
        """Checks that hardly any request failed, and with our server none."""
        failed, requests = measured["failed"], measured["requests"]
        if failed > (0 if self.contenders[store].kind == "ours" else requests * FAILED_SHARE_MAX):
            raise Failed(f"{path}: beside {requests} answers failed {measured['errors']}")
        if failed > 0:
            self.note(f"{store}, {path}: beside {requests} answers failed {measured['errors']}")
        return measured

    def hits(self, store, server, path, bytes_, connections):
        """A window in which no request may reach the origin."""
        asked = self.asked(path)
        measured = self.sound(store, path, self.window(server, path, self.reference(bytes_), connections))
        if self.asked(path) != asked:
            raise Failed(f"{path}: not every request was a hit")
        return measured

    def cores(self, store, repetition, measured):
        """Samples of the server's cost of a request, and of how busy both cores were."""
        share = measured["cpu_micros"] / measured["micros"] * 100
        self.client_shares.setdefault(store, []).append(share)
        self.sample(store, repetition, cpu_per_request=measured["server_micros"] / measured["requests"] / 1e6,
                    server_core=measured["server_micros"] / measured["micros"] * 100, client_core=share)

    def note_the_bound(self):
        """Notes the servers whose rates the client limits, since its core is full."""
        full = {store: sorted(shares)[len(shares) // 2] for store, shares in self.client_shares.items()}
        bound = [f"{store} ({share:.0f} %)" for store, share in full.items() if share >= BOUND_PERCENT]
        if bound:
            self.note(f"the client's core was what limited the rates of {', '.join(bound)}")


def _two_cores():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Failed("two cores are wanted, one for the server and one for the client")
    return cores[0], cores[1]


def _raise_descriptors():
    """Raises the limit of descriptors: each slow client takes one here and one at the server."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most
