"""The procedures. The definition of a workload names one of them. bench/METHODOLOGY.md describes them in words."""
import contextlib
import re
import time
import urllib.request

import contenders
import load
import observers
import served
from servers import Failed
from staging import bytes_of

# The share of gets of stored objects that a cache may miss: a cache may drop an entry if a bucket of its index is full.
MISSED_SHARE_MAX = 0.001
# Descriptors beside those of slow clients.
DESCRIPTORS_BESIDE = 200


def http(stage):
    """A burst of requests from a cold start, then a closed loop of hits."""
    bytes_ = bytes_of(stage.case["size"])
    for repetition, store in stage.turns(stage.contenders):
        path = f"/weak/{bytes_}/{repetition}"
        with stage.its_turn(store), stage.started(store) as server:
            _burst(stage, store, server, repetition, path, bytes_)
            _loop_after(stage, store, server, repetition, path, bytes_)
    stage.note_the_bound()


def _burst(stage, store, server, repetition, path, bytes_):
    requests = stage.settings["requests"]
    origin = server if store == "no cache" else stage.origin
    asked = stage.asked(path, origin)
    measured = stage.client.burst(server.url + path, stage.reference(bytes_), requests, stage.settings["concurrency"])
    stage.sample(store, repetition, failed=requests - measured["requests"], at_origin=stage.asked(path, origin) - asked)
    if measured["requests"] > 0:
        stage.sample(store, repetition, burst_p99=measured["p99"] / 1e6)
        stage.histogram(store, repetition, "burst", measured)


def _loop_after(stage, store, server, repetition, path, bytes_):
    """Hits of the objects that the burst has left in the cache, after a check that they are the origin's bytes."""
    connections = stage.settings["connections"]
    stage.fill(server, path, bytes_)
    if store == "no cache":
        measured = stage.window(server, path, stage.reference(bytes_), connections)
    else:
        measured = stage.hits(store, server, path, bytes_, connections)
    _rate(stage, store, repetition, measured)
    stage.sample(
        store, repetition, bytes=measured["bytes"] / measured["micros"] * 1e6, loop_failed=measured["failed"],
        cpu_per_byte=measured["server_micros"] / measured["bytes"] * 1e3)


def _rate(stage, store, repetition, measured):
    stage.sample(store, repetition, rate=measured["requests"] / measured["micros"] * 1e6)
    stage.histogram(store, repetition, "loop", measured)
    stage.cores(store, repetition, measured)


def bare(stage):
    """Hits of our server, and the same responses of hyper alone."""
    bytes_ = bytes_of(stage.case["size"])
    path = f"/page/{bytes_}/bare"
    with stage.all_started() as servers:
        servers = stage.ready(servers, lambda server: stage.fill(server, path, bytes_))
        _require_the_same_fields(servers, path)
        for repetition, store in stage.turns(servers):
            with stage.its_turn(store):
                _rate(stage, store, repetition, stage.hits(store, servers[store], path, bytes_, stage.settings["connections"]))
    stage.note_the_bound()


def observed(stage):
    """Hits without a log and metrics, and with all that an operator can look at."""
    bytes_ = bytes_of(stage.case["size"])
    path = f"/page/{bytes_}/observed"
    with stage.all_started() as servers:
        servers = stage.ready(servers, lambda server: stage.fill(server, path, bytes_))
        for repetition, store in stage.turns(servers):
            is_watched = store == "eyewall (observed)"
            with stage.its_turn(store), observers.watching(servers[store]) if is_watched else contextlib.nullcontext():
                _rate(stage, store, repetition, stage.hits(store, servers[store], path, bytes_, stage.settings["connections"]))
    stage.note_the_bound()


# Of connections that may resume a session, so many have to: the first ones have none yet.
RESUMED_SHARE_MIN = 0.9


def tls(stage):
    """Hits over TLS on kept connections; then a handshake for each request, full or resumed."""
    bytes_, connections = bytes_of(stage.case["size"]), stage.settings["connections"]
    path = f"/page/{bytes_}/tls"
    stage.make_certificates()
    with stage.all_started() as servers:
        servers = stage.ready(servers, lambda server: stage.fill(server, path, bytes_))
        for repetition, store in stage.turns(servers):
            with stage.its_turn(store):
                _rate(stage, store, repetition, stage.hits(store, servers[store], path, bytes_, connections))
            for measure, resumes in (("full", False), ("resumed", True)):
                with stage.its_turn(store):
                    _handshakes(stage, store, repetition, servers[store], path, measure, resumes)
    stage.note_the_bound()


def _handshakes(stage, store, repetition, server, path, measure, resumes):
    reference, connections = stage.reference(bytes_of(stage.case["size"])), stage.settings["connections"]
    measured = stage.sound(store, path, stage.handshakes(server, path, reference, connections, resumes))
    wrong = measured["resumed"] < (measured["requests"] - connections) * RESUMED_SHARE_MIN if resumes else measured["resumed"]
    if wrong:
        raise Failed(f"{path}: of {measured['requests']} connections {measured['resumed']} resumed a session")
    stage.sample(store, repetition, **{
        f"{measure}_rate": measured["requests"] / measured["micros"] * 1e6,
        f"{measure}_cpu": measured["server_micros"] / measured["requests"] / 1e6})


def _require_the_same_fields(servers, path):
    """Fails unless all servers answer a hit with the same field names, since a shorter head is cheaper."""
    names = {}
    for store, server in servers.items():
        with urllib.request.urlopen(server.url + path, timeout=30) as response:
            names[store] = sorted(name.lower() for name in response.headers)
    if len({tuple(of_one) for of_one in names.values()}) > 1:
        raise Failed(f"the fields of a hit differ: {names}")


def stores(stage):
    """The same server on different stores: one page, many pages in turn, or pages that were never requested."""
    bytes_, traffic = bytes_of(stage.case["size"]), stage.case["traffic"]
    once = traffic == "misses"
    if once:
        # It stores nothing, so there is nothing to compare.
        stage.contenders.pop("bare", None)
    many = stage.settings["many_bytes"] // bytes_ if traffic == "many pages" else None
    path = f"/page/{bytes_}/" + ("{}" if many else "one")

    def prepare(server):
        if many:
            stage.client.lap(server.url + path, stage.reference(bytes_), 2 * many, stage.settings["connections"], many)
        elif not once:
            stage.fill(server, path, bytes_)

    with stage.all_started() as servers:
        servers = stage.ready(servers, prepare)
        for repetition, store in stage.turns(servers):
            with stage.its_turn(store):
                own = f"/once/{bytes_}/{_word(store)}-{repetition}-{{}}" if once else path
                _rate(stage, store, repetition, _answers(stage, store, servers[store], own, bytes_, many))
    stage.note_the_bound()


def _word(store):
    """A store's name as a part of a path."""
    return re.sub(r"[^a-z]+", "-", store)


def _answers(stage, store, server, path, bytes_, many):
    """A window in which all requests reach the origin, or hardly any."""
    asked = stage.asked("")
    measured = stage.window(server, path, stage.reference(bytes_), stage.settings["connections"], many)
    missed = stage.asked("") - asked
    stage.sound(store, path, measured)
    if path.startswith("/once/") and missed < measured["requests"]:
        raise Failed(f"{path}: not every request was a miss")
    if not path.startswith("/once/") and missed > measured["requests"] * MISSED_SHARE_MAX:
        raise Failed(f"{path}: of {measured['requests']} requests {missed} were misses")
    return measured


def miss(stage):
    """Objects that were never requested: through servers that store them, and through proxies that don't."""
    bytes_, connections = stage.settings["page_bytes"], stage.case["at_once"]
    with stage.all_started() as servers:
        for repetition, store in stage.turns(servers):
            with stage.its_turn(store):
                path = f"/once/{bytes_}/{_word(store)}-{repetition}-{{}}"
                asked = stage.asked("/once")
                measured = stage.sound(store, path, stage.window(servers[store], path, stage.reference(bytes_), connections))
                if stage.asked("/once") - asked < measured["requests"]:
                    raise Failed(f"{path}: not every request was a miss")
                stage.sample(store, repetition, time_p50=measured["p50"] / 1e6, rate=measured["requests"] / measured["micros"] * 1e6)
                stage.histogram(store, repetition, "time", measured)
                stage.cores(store, repetition, measured)


def slow(stage):
    """Fast hits alone, then beside many clients that read slowly. Also measures the anonymous memory for a slow client."""
    wanted = stage.settings["slow_clients"] + DESCRIPTORS_BESIDE
    if wanted > stage.descriptors:
        raise Failed(f"so many slow clients want {wanted} descriptors, and {stage.descriptors} are allowed (ulimit -Hn); "
                     "a smaller slow_clients among the settings of the workload takes fewer")
    bytes_, slow_bytes = stage.settings["page_bytes"], stage.settings["slow_bytes"]
    fast_path, slow_path = f"/page/{bytes_}/fast", f"/page/{slow_bytes}/slow"
    connections = stage.settings["connections"]
    with stage.all_started() as servers:
        base = {}
        for store, server in servers.items():
            with stage.its_turn(store):
                stage.fill(server, fast_path, bytes_)
                stage.fill(server, slow_path, slow_bytes)
                stage.hits(store, server, fast_path, bytes_, connections)
                # Memory that a server keeps after earlier slow clients counts as their cost, too.
                base[store] = server.anonymous_bytes()
        for repetition, store in stage.turns(base):
            with stage.its_turn(store):
                alone = stage.hits(store, servers[store], fast_path, bytes_, connections)
                with load.SlowClients(stage.client.core, servers[store], slow_path, stage.settings["slow_clients"]) as clients:
                    time.sleep(stage.settings["settle_seconds"])
                    grown = max(servers[store].anonymous_bytes() - base[store], 0)
                    beside = stage.hits(store, servers[store], fast_path, bytes_, connections)
                stage.sample(
                    store, repetition, memory=grown / stage.settings["slow_clients"] / 1024, alone_p99=alone["p99"] / 1e6,
                    beside_p99=beside["p99"] / 1e6, slowdown=beside["p99"] / max(alone["p99"], 1))
                stage.histogram(store, repetition, "alone", alone)
                stage.histogram(store, repetition, "beside", beside)
                if clients.lost is None:
                    raise Failed("the slow clients ended before they were told to")
                stage.sample(store, repetition, lost=clients.lost)


def served_files(stage):
    """Files of a folder, requested in turn, with a connection for each reader."""
    words, readers = stage.case["files"], stage.case["readers"]
    files = served.Files(stage.scratch / "files", served.sizes_of(words, stage.settings, bytes_of), stage.seed)
    stage.files = files.folder
    with stage.all_started() as servers:
        servers = stage.ready(servers, files.check)
        for repetition, store in stage.turns(servers):
            with stage.its_turn(store):
                measured = stage.sound(store, files.path, stage.window(
                    servers[store], files.path, files.reference, readers, len(files.sizes), stage.settings["seconds"][words], finishes=True))
                _rate(stage, store, repetition, measured)
                stage.sample(store, repetition, bytes=measured["bytes"] / measured["micros"] * 1e6, p50=measured["p50"] / 1e6,
                             p99=measured["p99"] / 1e6)
    stage.note_the_bound()


# For each name of a procedure: the contenders that can take part, and the work.
ALL = {
    "http": (contenders.SERVERS, http),
    "http-bare": (contenders.SERVERS, bare),
    "http-observed": (contenders.OBSERVED, observed),
    "http-tls": (contenders.TLS_SERVERS, tls),
    "http-stores": (contenders.STORES, stores),
    "http-miss": (contenders.SERVERS, miss),
    "http-slow": (contenders.SERVERS, slow),
    "served-files": (contenders.FRAMEWORKS, served_files),
}
