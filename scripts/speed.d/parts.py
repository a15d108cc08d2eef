"""What is measured: each part gives its rows."""
import statistics
import time
import urllib.request

import contenders
import load
from servers import Failed
from record import Row

PAGE_BYTES = 9689
SIZES = {"1 KB": 1 << 10, "9,689 B": PAGE_BYTES, "100 KB": 100 << 10, "1 MB": 1 << 20}
NGINX = ("nginx", "nginx-nopush")
# Of the requests for hits that a server other than ours may fail, as one that closes a connection at the wrong moment.
FAILED_SHARE_MAX = 0.001
# A client that uses so much of its core is what limits.
BOUND_PERCENT = 90
STAMPEDE_CONCURRENCY = 200
MISS_CONNECTIONS = (1, 50)
# Who stands with the slow clients; the others have a thread for each and run out of them.
SLOW_CONTENDERS = ("eyewall", "nginx")
SETTLE_SECONDS = 2


class Run:
    """What the parts share: the servers, the origin, the client, and how long and how often."""

    def __init__(self, servers, origin, client, options, ground, running):
        self.servers, self.origin, self.client, self.core = servers, origin, client, client.core
        self.ground, self.scratch, self.running = ground, ground.scratch, running
        self.repetitions = 3 if options.quick else 5
        self.seconds = 1 if options.quick else 5
        self.stampede_requests = 1000 if options.quick else 5000
        self.slow_clients = options.slow_clients or (1000 if options.quick else 10000)
        self.notes = []

    def beside(self, start):
        """Ours, and a server of bare hyper that is started for a part."""
        bare = start(self.ground)
        self.running.append(bare)
        ours = {name: server for name, server in self.servers.items() if name == "eyewall"}
        return {**ours, bare.name: bare}

    def fetch(self, url):
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.read()

    def asked(self, path):
        """How often the origin was asked for a path."""
        return int(self.fetch(f"{self.origin.url}/asked{path}"))

    def reference(self, path):
        """A file with the body that the origin gives for a path."""
        file = self.scratch / f"reference{path.replace('/', '-')}"
        if not file.exists():
            file.write_bytes(self.fetch(self.origin.url + path))
        return file

    def fill(self, server, path):
        """Puts an object into a server's cache, and sees to it that it is the origin's."""
        expected = self.reference(path).read_bytes()
        for _ in range(3):
            if self.fetch(server.url + path) != expected:
                raise Failed(f"{server.name} answers {path} by other bytes than the origin")

    def window(self, server, path, reference, connections=load.CONNECTIONS):
        """What the client measured, with what of their cores server and client used; hardly anything may fail, of us nothing."""
        cpu = server.cpu_seconds()
        measured = self.client.measure(server.url + path, reference, self.seconds, connections)
        measured["server_micros"] = (server.cpu_seconds() - cpu) * 1e6
        failed, requests = sum(measured["errors"].values()), measured["requests"]
        if requests == 0 or failed > (0 if server.name == "eyewall" else requests * FAILED_SHARE_MAX):
            raise Failed(f"{server.name}, {path}: of {requests} requests failed {measured['errors']}")
        if failed > 0:
            self.notes.append(f"{server.name}, {path}: of {requests} requests failed {measured['errors']}.")
        return measured

    def hits(self, server, path):
        """A measured window in which nothing may reach the origin."""
        asked = self.asked(path)
        measured = self.window(server, path, self.reference(path))
        if self.asked(path) != asked:
            raise Failed(f"{server.name}, {path}: not every request was a hit")
        return measured


class Cores:
    """Rows of what a request costs the server, and of how busy both cores were: who has a full client's core is bound by it."""

    def __init__(self, section, words):
        self.cost = Row(section, f"{words}: server's CPU", "us/request")
        self.server = Row(section, f"{words}: server's share of its core", "%")
        self.client = Row(section, f"{words}: client's share of its core", "%")
        self.rows = [self.cost, self.server, self.client]

    def add(self, name, measured):
        self.cost.add(name, measured["server_micros"] / measured["requests"])
        self.server.add(name, measured["server_micros"] / measured["micros"] * 100)
        self.client.add(name, measured["cpu_micros"] / measured["micros"] * 100)

    def note_the_bound(self, run):
        """Says whose rates are the client's."""
        shares = {name: statistics.median(samples) for name, samples in self.client.samples.items()}
        bound = [f"{name} ({share:.0f} %)" for name, share in shares.items() if share >= BOUND_PERCENT]
        if bound:
            run.notes.append(f"{self.client.case} was what limited the rates of {', '.join(bound)}.")


def hits(run):
    rows = []
    for words, size in SIZES.items():
        path = f"/page/{size}/hits"
        for server in run.servers.values():
            run.fill(server, path)
        rate = Row("hits", f"{words}, {load.CONNECTIONS} kept connections", "requests/s")
        volume = Row("hits", f"{words}, the same", "MB/s")
        cpu = Row("hits", f"{words}, the same", "CPU s/GB")
        cores = Cores("hits", words)
        for _ in range(run.repetitions):
            for name, server in run.servers.items():
                measured = run.hits(server, path)
                rate.add(name, measured["requests"] / measured["micros"] * 1e6)
                volume.add(name, measured["bytes"] / measured["micros"])
                cpu.add(name, measured["server_micros"] / measured["bytes"] * 1e3)
                cores.add(name, measured)
        judge_hits(words, rate, volume, cpu)
        cores.cost.judge_ratio("the least of the others", best=min)
        cores.note_the_bound(run)
        rows += [rate, volume, cpu, *cores.rows]
    return rows


def judge_hits(words, rate, volume, cpu):
    """Bars; against nginx it is the better of the two in each repetition."""
    if words == "9,689 B":
        rate.judge_ratio("nginx", NGINX, at_least=1.5, aim=2.5)
        rate.judge_ratio("varnish", ["varnish"], at_least=2, aim=4)
        rate.judge_ratio("apache", ["apache"], at_least=6, aim=10)
    elif words == "1 MB":
        volume.judge_ratio("the best of the others", at_least=1)
        cpu.judge_ratio("the least of the others", best=min, at_most=1, aim=0.8)
    else:
        rate.judge_ratio("the best of the others", at_least=1.3, aim=2)
    if words != "1 MB":
        cpu.judge_ratio("the least of the others", best=min)


def bare(run):
    """Hits of ours, and the same answers of hyper with nothing else; what is judged is what a request costs the server."""
    rows = []
    servers = run.beside(contenders.start_bare)
    for words, size in SIZES.items():
        path = f"/page/{size}/bare"
        for server in servers.values():
            run.fill(server, path)
        require_the_same_fields(servers, path)
        rate = Row("bare", f"{words}, {load.CONNECTIONS} kept connections", "requests/s")
        cores = Cores("bare", words)
        for _ in range(run.repetitions):
            for name, server in servers.items():
                measured = run.hits(server, path)
                rate.add(name, measured["requests"] / measured["micros"] * 1e6)
                cores.add(name, measured)
        bar = {"at_most": 1.25, "aim": 1.1} if size == PAGE_BYTES else {}
        cores.cost.judge_ratio("bare", ["bare"], **bar)
        cores.note_the_bound(run)
        rows += [rate, *cores.rows]
    return rows


def require_the_same_fields(servers, path):
    """Fails unless all of them answer a hit by fields of the same names: a shorter head is cheaper."""
    names = {}
    for server in servers.values():
        with urllib.request.urlopen(server.url + path, timeout=30) as response:
            names[server.name] = sorted(name.lower() for name in response.headers)
    if len({tuple(of_one) for of_one in names.values()}) > 1:
        raise Failed(f"the fields of a hit differ: {names}")


def stampede(run):
    """A cold object for each contender and repetition, before an origin that can't bear it; and the origin alone."""
    case = f"{run.stampede_requests} requests, concurrency {STAMPEDE_CONCURRENCY}, a connection each"
    times = {p: Row("stampede", f"{case}: {p} %", "ms") for p in load.PERCENTILES}
    failures = Row("stampede", f"{case}: failed", "requests")
    asked = Row("stampede", f"{case}: at the origin", "requests")
    targets = {**run.servers, "no cache": run.origin}
    for repetition in range(run.repetitions):
        for name, server in targets.items():
            path = f"/weak/{PAGE_BYTES}/{name.replace(' ', '-')}-{repetition}"
            table = run.scratch / "ab.csv"
            measured = load.ab(run.core, server.url + path, PAGE_BYTES, run.stampede_requests, STAMPEDE_CONCURRENCY, table)
            if measured is None:
                raise Failed(f"ab gave up on {name}")
            for percentile, time_ms in measured["times"].items():
                times[percentile].add(name, time_ms)
            failures.add(name, measured["failed"])
            asked.add(name, run.asked(path))
    if "eyewall" in run.servers:
        failures.judge("eyewall", failures.samples["eyewall"], at_most=0)
        asked.judge("eyewall", asked.samples["eyewall"], at_most=1)
        times[99].judge_ratio("apache", ["apache"], at_most=0.5)
    return [*times.values(), failures, asked]


def slow(run):
    """Fast hits alone, then beside many clients that read slowly; what a slow client costs in anonymous memory."""
    fast, large = f"/page/{PAGE_BYTES}/fast", f"/page/{1 << 20}/slow"
    clients = f"{run.slow_clients:,} clients reading 1 KB/s of 1 MB"
    memory = Row("slow", f"{clients}: anonymous memory a client", "KiB")
    alone = Row("slow", "p99 of fast hits alone", "ms")
    beside = Row("slow", f"p99 of fast hits beside {clients}", "ms")
    slowdowns = {}
    servers = {name: server for name, server in run.servers.items() if name in SLOW_CONTENDERS}
    base = {}
    for name, server in servers.items():
        run.fill(server, fast)
        run.fill(server, large)
        run.hits(server, fast)
        # What a server keeps of earlier slow clients is what they cost, too.
        base[name] = server.anonymous_bytes()
    for _ in range(run.repetitions):
        for name, server in servers.items():
            without = run.hits(server, fast)
            with load.SlowClients(run.core, server, large, run.slow_clients) as clients_there:
                time.sleep(SETTLE_SECONDS)
                memory.add(name, max(server.anonymous_bytes() - base[name], 0) / run.slow_clients / 1024)
                crowded = run.hits(server, fast)
            if clients_there.lost != 0:
                run.notes.append(f"{name} lost {clients_there.lost} slow clients.")
            alone.add(name, without["p99"] / 1000)
            beside.add(name, crowded["p99"] / 1000)
            slowdowns.setdefault(name, []).append(crowded["p99"] / max(without["p99"], 1))
    for name, values in slowdowns.items():
        bar = {"at_most": 2} if name == "eyewall" else {}
        beside.judge(f"{name}, beside / alone", values, **bar)
    if "eyewall" in memory.samples:
        memory.judge("eyewall", memory.samples["eyewall"], at_most=32)
    return [memory, alone, beside]


def miss(run):
    """Objects that nobody has asked for, through us, which store them, and through a proxy of hyper, which doesn't."""
    rows = []
    proxies = run.beside(contenders.start_bare_proxy)
    reference = run.reference(f"/page/{PAGE_BYTES}/miss")
    for connections in MISS_CONNECTIONS:
        words = f"9,689 B, {connections} at a time"
        time_of_one = Row("miss", f"{words}: median time", "us")
        cores = Cores("miss", words)
        for repetition in range(run.repetitions):
            for name, server in proxies.items():
                asked = run.asked("/once")
                path = f"/once/{PAGE_BYTES}/{name}-{connections}-{repetition}-{{}}"
                measured = run.window(server, path, reference, connections)
                if run.asked("/once") - asked < measured["requests"]:
                    raise Failed(f"{name}, {path}: not every request was a miss")
                time_of_one.add(name, measured["p50"])
                cores.add(name, measured)
        time_of_one.judge_ratio("bare-proxy", ["bare-proxy"], at_most=1.15, aim=1.05)
        cores.cost.judge_ratio("bare-proxy", ["bare-proxy"])
        rows += [time_of_one, *cores.rows]
    return rows


PARTS = {"hits": hits, "bare": bare, "stampede": stampede, "slow": slow, "miss": miss}
