"""Records that nothing was measured for: the shapes of the suite's workloads, small, for tests of their readers."""
import json
import random

from form import FORMAT

STORES = {
    "eyewall": {"kind": "ours", "version": "eyewall 0.0 (invented)"},
    "eyewall, copying": {"kind": "ours", "version": "eyewall 0.0 (invented)"},
    "file-per-entry": {"kind": "other", "version": None},
    "quick_cache": {"kind": "other", "version": "0.0 (invented)"},
    "sqlite": {"kind": "other", "version": None},
    "redis-server": {"kind": "other", "version": None},
    "LRU": {"kind": "reference", "version": None},
    "offline optimum": {"kind": "reference", "version": None},
    "IPC::MM": {"kind": "other", "version": None, "absent": "it can't be built with a Perl of today"},
}
MEASURED = ("eyewall", "eyewall, copying", "file-per-entry", "quick_cache", "sqlite", "redis-server")
REPETITIONS = 5
# Of a latency distribution.
VALUES = 4000


class Invented:
    """A record in the making."""

    def __init__(self, name, machine, seed):
        self.random = random.Random(seed)
        self.samples, self.histograms = [], []
        self.run = {
            "format": FORMAT, "id": name, "title": f"Invented for tests, {machine}", "began": "2026-11-22T14:05:00Z", "kind": "whole",
            "complete": True,
            "machine": {"name": machine, "cpu": "Invented CPU", "cores": 8, "memory_mib": 16384, "kernel": "linux 6.0",
                        "storage": [{"name": "ext4", "file_system": "ext4", "device": "NVMe"},
                                    {"name": "tmpfs", "file_system": "tmpfs", "device": None}],
                        "governor": "performance", "load_at_start": 0.1,
                        "noise": {"what": "a loop of 10 us, p999", "unit": "s", "median": 1.1e-5, "min": 1.0e-5, "max": 2.0e-5}},
            "commit": f"{seed:07}", "seed": seed, "stores": STORES, "workloads": [], "notes": ["Every figure here is invented."],
        }

    def workload(self, name, title, parameters, measures, views, **more):
        self.run["workloads"].append({
            "name": name, "title": title, "about": "Invented figures.", "seed": None, "repetitions": REPETITIONS, "parameters": parameters,
            "measures": measures, "views": views, "comparisons": [], "first": {}, **more,
        })

    def sample(self, workload, measure, case, store, repetition, value, at=None):
        unit = next(one for one in self.run["workloads"] if one["name"] == workload)["measures"][measure]["unit"]
        sample = {"workload": workload, "measure": measure, "case": case, "store": store, "repetition": repetition, "unit": unit,
                  "value": value}
        self.samples.append(sample if at is None else {**sample, "at": at})

    def around(self, value, width=0.1):
        return value * self.random.uniform(1 - width, 1 + width)

    def write(self, folder):
        made = folder / self.run["id"]
        made.mkdir(parents=True)
        (made / "record.json").write_text(_json(self.run), encoding="utf-8")
        (made / "samples.jsonl").write_text("".join(_json(sample) + "\n" for sample in self.samples), encoding="utf-8")
        (made / "histograms.jsonl").write_text("".join(_json(one) + "\n" for one in self.histograms), encoding="utf-8")
        return made


def _json(value):
    return json.dumps(value, ensure_ascii=False)  # tidy: word, the library's


def record(name, machine, seed):
    made = Invented(name, machine, seed)
    for add in (concurrency, traffic, sweep, replay, modules, places, oversized):
        add(made)
    return made


def part(name, began, commit, adders, **changes):
    """A run of some workloads."""
    made = Invented(name, "invented-8cores", 3)
    made.run.update({"began": began, "commit": commit, **changes})
    for add in adders:
        add(made)
    return made


def whole(name, began, names):
    """A run of all workloads that are named, all of one shape."""
    return part(name, began, "2222222", [lambda made, workload=workload: sweep(made, workload) for workload in sorted(names)])


def concurrency(made):
    threads, sizes = [1, 2, 4, 8, 16, 32, 64], ["100 B", "10 KB", "1 MB"]
    speed = {
    "eyewall": 4e6,
    "eyewall, copying": 2e6,
    "file-per-entry": 9e4,
    "quick_cache": 4.4e6,
    "sqlite": 3e5,
     "redis-server": 6e4}

    def comparison(count, size, store, bar=None, **more):
        return {"measure": "gets", "case": {"readers": count, "size": size, "storage": "ext4"}, "of": "eyewall", "to": [store],
                "how": "ratio", "bar": bar, "aim": None, **more}

    made.workload(
        "concurrency", "Concurrency",
        {"readers": {"title": "readers", "values": threads}, "size": {"title": "value size", "values": sizes},
         "storage": {"title": "storage", "values": ["tmpfs", "ext4"]}},
        {"gets": {"title": "Gets", "unit": "1/s", "better": "higher"}},
        [{"name": "throughput", "title": "Throughput", "kind": "curve", "measure": "gets", "x": "readers",
          "scales": {"x": "log", "y": "log"}},
         {"name": "one", "title": "One case", "kind": "dots", "measure": "gets"},
         {"name": "bars", "title": "Bars", "kind": "comparisons", "note": "A note of a view."}],
        comparisons=[comparison(64, "100 B", "file-per-entry", {"at_least": 20}), comparison(1, "1 MB", "quick_cache"),
                     comparison(64, "1 MB", "file-per-entry", {"at_least": 500}, note="A note why it is missed."),
                     comparison(8, "10 KB", "sqlite")],
        first={"size": "1 MB", "storage": "ext4"})
    for size_number, size in enumerate(sizes):
        for storage in ("tmpfs", "ext4"):
            for count in threads:
                for repetition in range(1, REPETITIONS + 1):
                    for store in MEASURED:
                        grown = count ** (0.9 if store.startswith("eyewall") else 0.5)
                        value = made.around(speed[store] * grown / 4 ** size_number, 0.05)
                        made.sample("concurrency", "gets", {"readers": count, "size": size,
                                    "storage": storage}, store, repetition, value)


def traffic(made):
    stores = ("eyewall", "file-per-entry", "sqlite")
    made.workload(
        "traffic", "Realistic traffic", {"caps": {"title": "caps", "values": ["as configured", "equal footprint"]}},
        {"get": {"title": "Latency of a get", "unit": "s", "better": "lower", "distribution": True},
         "footprint": {"title": "Footprint", "unit": "B", "better": None, "along": {"title": "time", "unit": "s"}}},
        [{"name": "tails", "title": "Latency tails", "kind": "distribution", "measure": "get"},
         {"name": "percentiles", "title": "Percentiles", "kind": "percentiles", "measure": "get"},
         {"name": "footprint", "title": "Footprint over time", "kind": "line", "measure": "footprint"}])
    for caps in ("as configured", "equal footprint"):
        for number, store in enumerate(stores):
            for repetition in range(1, REPETITIONS + 1):
                counts = {}
                for _ in range(VALUES):
                    nanoseconds = made.random.lognormvariate(6 + number * 2, 0.6) * (40 if made.random.random() < 0.005 else 1)
                    # Two digits, as a histogram of that precision has them.
                    bound = int(float(f"{nanoseconds:.1e}")) + 1
                    counts[bound] = counts.get(bound, 0) + 1
                made.histograms.append({"workload": "traffic", "measure": "get", "case": {"caps": caps}, "store": store,
                                        "repetition": repetition, "unit": "ns", "buckets": [[bound, counts[bound]] for bound in sorted(counts)]})
        for store in stores:
            for repetition in (1, 2):
                for step in range(120):
                    grown = min(1, step / 30) * 1e9
                    over = 0 if store == "eyewall" else made.random.random() * 2.5e8 if step > 30 else 0
                    made.sample("traffic", "footprint", {"caps": caps}, store, repetition, grown + over, at=step * 0.5)


def sweep(made, name="sweep"):
    made.workload(name, "Eviction sweep", {},
                  {"rate": {"title": "Writes", "unit": "1/s", "better": "higher", "along": {"title": "batch"}}},
                  [{"name": "batches", "title": "Batch by batch", "kind": "line", "measure": "rate", "scales": {"y": "log"}}],
                  comparisons=[{"measure": "rate", "case": {}, "of": "eyewall", "to": ["file-per-entry"], "how": "ratio",
                                "bar": {"at_least": 15}, "aim": 30}])
    for store, rate in (("eyewall", 2e5), ("file-per-entry", 8e3)):
        for repetition in (1, 2, 3):
            for batch in range(1, 101):
                made.sample(name, "rate", {}, store, repetition, made.around(rate, 0.3), at=batch)


def replay(made):
    shares, traces = [0.1, 1, 3, 10, 30], ["web", "media"]
    made.workload(
        "replay", "Trace replay",
        {"cap": {"title": "cache size, of all bytes", "unit": "%", "values": shares}, "trace": {"title": "trace", "values": traces}},
        {"hits": {"title": "Object hit ratio", "unit": "%", "better": "higher"}},
        [{"name": "hits", "title": "Object hits", "kind": "curve", "measure": "hits", "x": "cap", "scales": {"x": "log", "y": "linear"}}],
        comparisons=[{"measure": "hits", "case": {"cap": 10, "trace": "web"}, "of": "eyewall", "to": ["LRU"], "how": "difference",
                      "bar": {"at_least": -1}, "aim": None}])
    for trace in traces:
        for number, share in enumerate(shares):
            for store, more in (("eyewall", 6), ("file-per-entry", -4), ("LRU", 0), ("offline optimum", 13)):
                repetitions = 3 if store == "eyewall" else 1
                for repetition in range(1, repetitions + 1):
                    made.sample("replay", "hits", {"cap": share, "trace": trace}, store,
                                repetition, made.around(18 + 15 * number + more, 0.01))


def modules(made):
    types = ["147 B", "465 B", "5 fields"]
    made.workload(
        "modules", "Module comparison",
        {"type": {"title": "values", "values": types}, "configuration": {
            "title": "configuration", "values": ["small cap", "all fits"]}},
        {"set": {"title": "Set", "unit": "1/s", "better": "higher"}, "get": {"title": "Get", "unit": "1/s", "better": "higher"}},
        [{"name": "table", "title": "Modules and types", "kind": "table", "measures": ["set", "get"], "columns": "type"}],
        comparisons=[{"measure": "get", "case": {"type": "147 B", "configuration": "small cap"}, "of": "eyewall",
                      "to": ["sqlite", "redis-server"], "how": "ratio", "bar": {"at_least": 1}, "aim": None, "words": "the best of the others"}])
    for configuration in ("small cap", "all fits"):
        for kind in types:
            for measure in ("set", "get"):
                for number, store in enumerate(("eyewall", "sqlite", "redis-server", "LRU")):
                    for repetition in range(1, 4):
                        made.sample("modules", measure, {"type": kind, "configuration": configuration}, store, repetition,
                                    made.around(9e5 / (number + 1)))


def places(made):
    made.workload(
        "places", "Disk or shared memory", {"place": {"title": "place", "values": ["disk", "shared memory"]}},
        {"load": {"title": "Page load", "unit": "s", "better": "lower"}},
        [{"name": "loads", "title": "Page loads", "kind": "dots", "measure": "load", "scales": {"y": "linear"}},
         {"name": "bars", "title": "Comparisons", "kind": "comparisons"}],
        comparisons=[{"measure": "load", "case": {"place": place}, "of": "eyewall", "to": ["file-per-entry"], "how": "ratio", "bar": None,
                      "aim": None, "test": True} for place in ("disk", "shared memory")])
    for place, slower in (("disk", 1.0), ("shared memory", 1.5)):
        for store in ("eyewall", "file-per-entry"):
            for repetition in range(1, 5):
                for _ in range(25):
                    value = made.around(0.004 * (slower if store == "file-per-entry" else 1), 0.2)
                    made.sample("places", "load", {"place": place}, store, repetition, value)


def oversized(made):
    made.workload("oversized", "Oversized cache", {}, {}, [], skipped="it wants a control group, and there is none to be had")
