"""What is measured: each part gives its rows."""
import json
import time
import urllib.request

import load
from servers import Failed
from record import Row

PAGE_BYTES = 9689
SIZES = {"1 KB": 1 << 10, "9,689 B": PAGE_BYTES, "100 KB": 100 << 10, "1 MB": 1 << 20}
NGINX = ("nginx", "nginx-nopush")
# Of the requests for hits that a server other than ours may fail, as one that closes a connection at the wrong moment.
FAILED_SHARE_MAX = 0.001
STAMPEDE_CONCURRENCY = 200
# Who stands with the slow clients; the others have a thread for each and run out of them.
SLOW_CONTENDERS = ("eyewall", "nginx")
SETTLE_SECONDS = 2


class Run:
    """What the parts share: the servers, the origin, the client's core, and how long and how often."""

    def __init__(self, servers, origin, client_core, options, scratch):
        self.servers, self.origin, self.core, self.scratch = servers, origin, client_core, scratch
        self.repetitions = 3 if options.quick else 5
        self.seconds = 1 if options.quick else 5
        self.stampede_requests = 1000 if options.quick else 5000
        self.slow_clients = options.slow_clients or (1000 if options.quick else 10000)
        self.notes = []

    def fetch(self, url):
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.read()

    def counts(self):
        """How often each path was asked for at the origin."""
        return json.loads(self.fetch(self.origin.url + "/counts"))

    def fill(self, server, path):
        """Puts an object into a server's cache, and sees to it that it is the origin's."""
        expected = self.fetch(self.origin.url + path)
        for _ in range(3):
            if self.fetch(server.url + path) != expected:
                raise Failed(f"{server.name} answers {path} by other bytes than the origin")

    def hits(self, server, path):
        """A measured window of wrk, in which nothing may reach the origin, and hardly anything fail; of us nothing."""
        asked = self.counts().get(path, 0)
        cpu = server.cpu_seconds()
        measured = load.wrk(self.core, server.url + path, self.seconds)
        measured["cpu_seconds"] = server.cpu_seconds() - cpu
        failed, requests = sum(measured["errors"].values()), measured["requests"]
        if failed > (0 if server.name == "eyewall" else requests * FAILED_SHARE_MAX):
            raise Failed(f"{server.name}, {path}: of {requests} requests failed {measured['errors']}")
        if failed > 0:
            self.notes.append(f"{server.name}, {path}: of {requests} requests failed {measured['errors']}.")
        if self.counts().get(path, 0) != asked:
            raise Failed(f"{server.name}, {path}: not every request was a hit")
        return measured


def hits(run):
    rows = []
    for words, size in SIZES.items():
        path = f"/page/{size}/hits"
        for server in run.servers.values():
            run.fill(server, path)
        rate = Row("hits", f"{words}, {load.CONNECTIONS} kept connections", "requests/s")
        volume = Row("hits", f"{words}, the same", "MB/s")
        cpu = Row("hits", f"{words}, the same", "CPU s/GB")
        for _ in range(run.repetitions):
            for name, server in run.servers.items():
                measured = run.hits(server, path)
                rate.add(name, measured["requests"] / measured["micros"] * 1e6)
                volume.add(name, measured["bytes"] / measured["micros"])
                cpu.add(name, measured["cpu_seconds"] / measured["bytes"] * 1e9)
        judge_hits(words, rate, volume, cpu)
        rows += [rate, volume, cpu]
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
            asked.add(name, run.counts().get(path, 0))
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
    contenders = {name: server for name, server in run.servers.items() if name in SLOW_CONTENDERS}
    base = {}
    for name, server in contenders.items():
        run.fill(server, fast)
        run.fill(server, large)
        run.hits(server, fast)
        # What a server keeps of earlier slow clients is what they cost, too.
        base[name] = server.anonymous_bytes()
    for _ in range(run.repetitions):
        for name, server in contenders.items():
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


PARTS = {"hits": hits, "stampede": stampede, "slow": slow}
