"""Records out of results in the form of bench-engine, which the server's benchmark had, too (bench/results/*.json)."""
import json
import math
import re
import statistics

from form import FORMAT, Unfit

# What a word of a case says, in the order of asking; what none of them knows is the parameter `case`.
WORDS = (
    ("threads", "threads", re.compile(r"(\d+) threads?")),
    ("size", "value size", re.compile(r"[\d,.]+ (?:B|KB|MB)")),
    ("storage", "storage", re.compile(r"ext4|tmpfs|xfs|btrfs|overlayfs|file system 0x\w+")),
    ("read", "what is read", re.compile(r"one byte a page|every byte")),
)
# Of a row, what is no store that could be chosen, or ours in another state.
REFERENCES = re.compile(r"simulated|reference|bare|idle|sleeps|no cache|plain read|put before|^before$|window before|no tags|^put$")
BESIDE = re.compile(r"(p99 of fast hits) (alone|beside .+)")
CELL = re.compile(r"(?P<trace>\S+) (?P<percent>\d+) %(?P<mark> \(not scored\))?, (?P<hint>default hint|hint \d+)(?P<rest>.*)")
CAP = re.compile(r"(.+), cap ([\d.]+) x")
# Units that the explorer gives a prefix to: how many of its own they are.
UNITS = {"M/s": ("1/s", 1e6), "k/s": ("1/s", 1e3), "requests/s": ("1/s", 1), "us": ("s", 1e-6), "ms": ("s", 1e-3)}
# Of measures that the old result tells apart by nothing else.
UNIT_TITLES = {"requests/s": "requests", "MB/s": "bytes", "CPU s/GB": "the server's CPU for a GB"}
BETTER_MORE = re.compile(r"hit|live entries")
TITLES = {
    "get": "Gets that hit", "files": "Gets against file-per-entry", "processes": "Processes and threads", "put": "Puts that evict",
    "sweep": "Eviction sweep", "overflow": "Cap discipline", "replay": "Trace replay", "open": "Opening",
    "overhead": "Bytes beyond the values", "fill": "Single flight", "purge": "Purging", "tagged": "Tags", "stream": "Streaming in",
    "crashed": "After a loss of power", "verify": "Verification", "paging": "More than memory",
    "sizes": "Caps around the size of memory", "hits": "Hits over HTTP", "bare": "Against bare hyper",
    "stampede": "A stampede on a cold object", "slow": "Slow clients", "miss": "Misses",
}


def record_of(path):
    """The run, as record.json has it, and its samples."""
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unfit(f"{path}: {error}") from None
    if not isinstance(old, dict) or old.get("schema") != 1 or not isinstance(old.get("rows"), list):
        raise Unfit(f"{path}: no result of the engine's or the server's benchmark, which has \"schema\": 1 and rows")
    stores, workloads, samples, notes = {}, {}, [], list(old["notes"])
    try:
        for row in old["rows"]:
            name = row["section"]
            workload = workloads.setdefault(name, Workload(name, old))
            workload.take(row, stores, samples, notes)
        run = _run(path, old, stores, notes)
    except (KeyError, TypeError, AttributeError) as error:
        raise Unfit(f"{path}: a part of the result is missing or of another kind: {error}") from None
    run["workloads"] = [workload.definition(samples) for workload in workloads.values()]
    return run, samples


def _name_of(cpu, cores):
    """What records of one machine have in common, fit for a file's name."""
    words = re.sub(r"\(R\)|\(TM\)|processor|cpu|@.*", " ", cpu, flags=re.IGNORECASE).lower()
    return "-".join([*re.findall(r"[a-z0-9]+", words), f"{cores}cores"])


def _run(path, old, stores, notes):
    machine = old["machine"]
    versions = old.get("versions", {})
    storage = [{"name": machine[key], "file_system": machine[key], "device": None}
               for key in ("disk_file_system", "shm_file_system") if key in machine]
    kind = "server" if "commit" in old else "engine"
    for name, store in stores.items():
        store["version"] = versions.get(name) or versions.get(name.split("-")[0])
    return {
        "format": FORMAT, "id": path.stem.lower(), "title": f"{kind.capitalize()} benchmark, {path.stem}", "began": old["date"],
        "kind": "quick" if old["quick"] else "whole", "complete": True,
        "machine": {
            "name": _name_of(machine["cpu"], machine["cores"]), "cpu": machine["cpu"], "cores": machine["cores"],
            "memory_mib": machine["memory_mib"], "kernel": machine["kernel"], "storage": storage,
            "governor": None, "load_at_start": machine.get("load_at_start"), "noise": None,
        },
        "commit": old.get("commit"), "seed": old.get("seed"), "stores": stores, "workloads": [], "notes": notes,
    }


class Workload:
    """A section of the old result on its way to be a workload."""

    def __init__(self, name, old):
        self.name, self.old = name, old
        self.parameters, self.measures, self.comparisons = {}, {}, []
        self.shapes = {}

    def take(self, row, stores, samples, notes):
        case, words = self._case(row)
        unit, factor = UNITS.get(row["unit"], (row["unit"], 1))
        measure = self._measure(words, row, unit)
        for series in row["series"]:
            store, own = self._store(series["store"])
            whole = {**case, **own}
            for name, value in whole.items():
                values = self.parameters.setdefault(name, [])
                if value not in values:
                    values.append(value)
            self.shapes[measure] = tuple(whole)
            stores.setdefault(store, {"kind": _kind(store), "version": None})
            for repetition, value in enumerate(series["samples"], 1):
                samples.append({"workload": self.name, "measure": measure, "case": whole, "store": store,
                                "repetition": repetition, "unit": unit, "value": value * factor})
        names = [series["store"] for series in row["series"]]
        for judged in row["judgements"]:
            self._compare(judged, names, measure, case, factor, row, notes)

    def _case(self, row):
        """The parameters of a row, and what of its words says what was measured."""
        case, _, words = row["case"].rpartition(": ")
        if not case:
            case, words = row["case"], ""
        beside = BESIDE.fullmatch(case)
        if beside:
            return {"case": beside[2]}, beside[1]
        cell = CELL.fullmatch(case)
        if cell:
            hint = "default" if cell["hint"] == "default hint" else "mean of the objects"
            return {"trace": cell["trace"], "cap": int(cell["percent"]), "hint": hint}, words
        if self.name == "overhead":
            return {}, case
        found, rest = {}, []
        for word in case.split(", "):
            for name, _, form in WORDS:
                match = form.fullmatch(word)
                if match and name not in found:
                    found[name] = int(match[1]) if name == "threads" else word
                    break
            else:
                if word not in ("the same", "50 kept connections"):
                    rest.append(word)
        if rest:
            found["case"] = ", ".join(rest)
        return found, words

    def _store(self, name):
        """A store, and what of its name is a parameter."""
        cap = CAP.fullmatch(name) if self.name == "sizes" else None
        return (cap[1], {"cap": float(cap[2])}) if cap else (name, {})

    def _measure(self, words, row, unit):
        if re.fullmatch(r"\d+ %", words):
            words = f"time of {words} of the requests"
        title = words or UNIT_TITLES.get(row["unit"]) or TITLES.get(self.name, self.name)
        name = re.sub(r"[^a-z0-9]+", "-", f"{words or self.name} {row['unit']}".lower()).strip("-")
        if unit == "%":
            better = "higher" if BETTER_MORE.search(words) else None
        elif unit == "k":
            better = None
        else:
            better = "higher" if unit.endswith("/s") else "lower"
        self.measures.setdefault(name, {"title": title[0].upper() + title[1:], "unit": unit, "better": better})
        return name

    def _compare(self, judged, names, measure, case, factor, row, notes):
        of, how, to = _sides(judged["what"], names)
        more = {}
        if judged["what"].endswith(", beside / alone"):
            of, how = judged["what"].removesuffix(", beside / alone"), "ratio"
            to, more = [of], {"to_case": {"case": "alone"}}
        if of is None or self.name == "sizes":
            notes.append(f"{self.name}, {row['case']}: {judged['what']} was {judged['median']:g} "
                         f"({judged['min']:g} to {judged['max']:g}); this form of record can't hold what it was held against.")
            return
        scale = 1 if how == "ratio" else factor
        bar = judged["bar"] and {kind: value * scale for kind, value in judged["bar"].items()}
        comparison = {"measure": measure, "case": case, "of": of, "to": to, "how": how, "bar": bar,
                      "aim": None if judged["aim"] is None else judged["aim"] * scale, **more}
        if len(to) > 1:
            comparison["words"] = judged["what"].split(" / ", 1)[1]
        self.comparisons.append(comparison)

    def definition(self, samples):
        views = []
        if self.comparisons:
            views.append({"name": "comparisons", "title": "Comparisons and bars", "kind": "comparisons"})
        axis = {"get": "threads", "files": "threads", "replay": "cap", "sizes": "cap"}.get(self.name)
        for name, measure in self.measures.items():
            if axis in self.shapes[name]:
                views.append({"name": name, "title": measure["title"], "kind": "curve", "measure": name, "x": axis,
                              "scales": {"x": "log", "y": "linear" if measure["unit"] == "%" else "log"}})
            else:
                views.append({"name": name, "title": measure["title"], "kind": "dots", "measure": name})
        if len(self.measures) > 1 and len({*self.shapes.values()}) == 1:
            views.append({"name": "all", "title": "All as a table", "kind": "table", "measures": list(self.measures)})
        return {
            "name": self.name, "title": TITLES.get(self.name, self.name),
            "about": f"Imported from an older result. What is done stands in bench/METHODOLOGY.md, under {self.name}.",
            "seed": self.old.get("seed"), "repetitions": self.old["repetitions"],
            "parameters": {name: _parameter(self.name, name, values) for name, values in self.parameters.items()},
            "measures": self.measures, "views": views, "comparisons": self.comparisons, "first": self._worst(samples),
        }

    def _worst(self, samples):
        """The case in which ours does worst against another, which is the one to be shown first."""
        figures = {}
        for sample in samples:
            if sample["workload"] == self.name:
                key = (sample["measure"], tuple(sample["case"].items()), sample["store"])
                figures.setdefault(key, []).append(sample["value"])
        worst, case = math.inf, {}
        for comparison in self.comparisons:
            better = self.measures[comparison["measure"]]["better"]
            if comparison["how"] != "ratio" or better is None or _kind(comparison["of"]) != "ours":
                continue
            if any(_kind(store) != "other" for store in comparison["to"]):
                continue
            key = (comparison["measure"], tuple(comparison["case"].items()))
            ours, *theirs = (statistics.median(figures[(*key, store)]) for store in (comparison["of"], *comparison["to"]))
            if min(ours, *theirs) > 0:
                advantage = ours / max(theirs) if better == "higher" else min(theirs) / ours
                if advantage < worst:
                    worst, case = advantage, comparison["case"]
        return case


def _kind(store):
    if store.startswith(("eyewall", "verify, ", "streamed, ")) or store in ("after", "4 tags"):
        return "ours"
    return "reference" if re.search(
        REFERENCES, store) else "other"


def _sides(what, names):
    """Both sides of a comparison and the way of it; None where they aren't stores of the row."""
    if what in names:
        return what, "value", []
    for sign, how in ((" / ", "ratio"), (" - ", "difference")):
        for of in names:
            if what.startswith(of + sign):
                words = what[len(of + sign):]
                if words in names:
                    # Two settings of nginx are measured, and it is the better one that counts.
                    return of, how, [words, *(name for name in names if words == "nginx" and name.startswith("nginx-"))]
                if words in ("the best of the others", "the least of the others"):
                    return of, how, [name for name in names if name != of]
    return None, None, None


def _parameter(workload, name, values):
    titles = {known: title for known, title, _ in WORDS} | {"case": "case", "trace": "trace", "hint": "entry-size hint"}
    if name == "cap":
        title, unit = ("cap, of the bytes of all objects", "%") if workload == "replay" else ("cap, of the memory", "x")
        return {"title": title, "unit": unit, "values": sorted(values)}
    if name == "threads":
        return {"title": "threads", "values": sorted(values)}
    return {"title": titles[name], "values": values}
