"""The form of a record, as bench/RECORD.md has it: reading one, and what is wrong with it."""
import collections
import gzip
import json
import math
import re

FORMAT = 1
PLAIN = (int, float)
TEXT_OR_NULL = (str, type(None))
SCALES = {"linear", "log"}

# For each object: the fields that it must have and those that it may have, with their types.
RUN = ({"format": int, "id": str, "title": str, "began": str, "kind": str, "complete": bool, "machine": dict,
        "commit": TEXT_OR_NULL, "seed": (int, type(None)), "stores": dict, "workloads": list, "notes": list}, {})
MACHINE = ({"name": str, "cpu": str, "cores": int, "memory_mib": int, "kernel": str, "storage": list,
            "governor": TEXT_OR_NULL, "load_at_start": (*PLAIN, type(None)), "noise": (dict, type(None))}, {})
STORAGE = ({"name": str, "file_system": str, "device": TEXT_OR_NULL}, {})
NOISE = ({"what": str, "unit": str, "median": PLAIN, "min": PLAIN, "max": PLAIN}, {})
STORE = ({"kind": str, "version": TEXT_OR_NULL}, {"absent": str})
WORKLOAD = ({"name": str, "title": str, "about": str, "seed": (int, type(None)), "repetitions": int, "parameters": dict,
             "measures": dict, "views": list, "comparisons": list, "first": dict}, {"settings": dict, "skipped": str})
PARAMETER = ({"title": str, "values": list}, {"unit": str})
MEASURE = ({"title": str, "unit": str, "better": TEXT_OR_NULL}, {"along": dict, "distribution": bool})
ALONG = ({"title": str}, {"unit": str})
COMPARISON = ({"measure": str, "case": dict, "of": str, "to": list, "how": str, "bar": (dict, type(None)),
               "aim": (*PLAIN, type(None))}, {"to_case": dict, "words": str, "test": bool, "note": str})
SAMPLE = ({"workload": str, "measure": str, "case": dict, "store": str, "repetition": int, "unit": str, "value": PLAIN},
          {"at": PLAIN})
HISTOGRAM = ({"workload": str, "measure": str, "case": dict, "store": str, "repetition": int, "unit": str,
              "buckets": list}, {})
VIEW = {"name": str, "title": str, "kind": str}
MEASURE_VIEW = {"measure": str}
# What each kind of view wants and may have beside that.
VIEWS = {
    "curve": ({**MEASURE_VIEW, "x": str}, {"scales": dict}),
    "dots": (MEASURE_VIEW, {"scales": dict}),
    "line": (MEASURE_VIEW, {"scales": dict}),
    "distribution": (MEASURE_VIEW, {}),
    "percentiles": (MEASURE_VIEW, {}),
    "table": ({"measures": list}, {"columns": str}),
    "comparisons": ({}, {}),
}


def _text(path):
    """What a file holds, or the one beside it that is packed."""
    packed = packed_path(path)
    if path.exists() or not packed.exists():
        return path.read_text(encoding="utf-8")
    with gzip.open(packed, "rt", encoding="utf-8") as file:
        return file.read()


def packed_path(path):
    """Where a file's packed form lies."""
    return path.with_name(f"{path.name}.gz")


class Unfit(Exception):
    """What is wrong with a record, and where; a line for each."""


class Record:
    """A record that was read. Samples and histograms lie by workload, measure, case and store."""

    def __init__(self, run, samples, histograms):
        self.run, self.samples, self.histograms = run, samples, histograms


def case_key(case):
    """A case as something that can be looked up."""
    return tuple(sorted(case.items()))


def read(folder):
    """The record in a directory; Unfit if it isn't one."""
    checker = Checker(folder)
    record = checker.record()
    if checker.wrong:
        raise Unfit("\n".join(checker.wrong))
    return record


class Checker:
    """Reads a record and notes all that is wrong with it."""

    def __init__(self, folder):
        self.folder, self.wrong = folder, []
        self.workloads = {}

    def record(self):
        path = self.folder / "record.json"
        try:
            run = _parsed(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            self.wrong.append(f"{path}: {error}; a record is a directory with a record.json (bench/RECORD.md)")
            return None
        if not isinstance(run, dict) or run.get("format") != FORMAT:
            told = run.get("format") if isinstance(run, dict) else None
            self.wrong.append(f"{path}: its format is {told!r}, this reads format {FORMAT}")
            return None
        if not self.fields(str(path), run, *RUN):
            return None
        self.head(str(path), run)
        samples = self.lines("samples.jsonl", run, SAMPLE, self.sample)
        histograms = self.lines("histograms.jsonl", run, HISTOGRAM, self.histogram, is_needed=False)
        if not self.wrong:
            self.held_together(str(path), run, samples, histograms)
        return Record(run, samples, histograms)

    def say(self, place, words):
        # A file that is wrong from end to end is told by its beginning.
        if len(self.wrong) < 50:
            self.wrong.append(f"{place}: {words}")

    def fields(self, place, given, wanted, allowed):
        """Whether an object has the fields it must have, and no others."""
        if not isinstance(given, dict):
            self.say(place, "an object is wanted")
            return False
        before = len(self.wrong)
        for name in wanted.keys() - given.keys():
            self.say(place, f"the field {name} is missing")
        for name, value in given.items():
            kind = wanted.get(name) or allowed.get(name)
            if kind is None:
                self.say(place, f"there is no field {name}")
            elif not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                self.say(place, f"{name} is {_short(value)}, which is of another kind")
            elif isinstance(value, float) and not math.isfinite(value):
                self.say(place, f"{name} is no number")
        return len(self.wrong) == before

    def one_of(self, place, what, value, choices):
        if value not in choices:
            self.say(place, f"{what} {_short(value)} is none of {', '.join(map(str, choices)) or 'those defined: there are none'}")
            return False
        return True

    def head(self, place, run):
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", run["id"]) or run["id"] != self.folder.resolve().name:
            self.say(place, f"the id {run['id']!r} has to be the directory's name, in small letters, digits, '.', '_' and '-'")
        if not re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?", run["began"]):
            self.say(place, f"began is {run['began']!r}, and not like 2026-11-22 or 2026-11-22T14:05:00Z")
        self.one_of(place, "kind", run["kind"], ("whole", "quick"))
        machine = run["machine"]
        if self.fields(f"{place}: machine", machine, *MACHINE):
            for number, storage in enumerate(machine["storage"], 1):
                self.fields(f"{place}: machine: storage {number}", storage, *STORAGE)
            if machine["noise"] is not None:
                self.fields(f"{place}: machine: noise", machine["noise"], *NOISE)
        for name, store in run["stores"].items():
            if self.fields(f"{place}: store {name}", store, *STORE):
                self.one_of(f"{place}: store {name}", "kind", store["kind"], ("ours", "other", "reference"))
        for note in run["notes"]:
            if not isinstance(note, str):
                self.say(place, f"a note is {_short(note)}, and not a text")
        for number, workload in enumerate(run["workloads"], 1):
            here = f"{place}: workload {number}"
            if self.fields(here, workload, *WORKLOAD):
                self.workload(f"{place}: {workload['name']}", workload, run)

    def workload(self, place, workload, run):
        before = len(self.wrong)
        if workload["name"] in self.workloads or not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", workload["name"]):
            self.say(place, "its name is taken, or has letters other than a-z, 0-9, '_' and '-'")
        for name, parameter in workload["parameters"].items():
            if self.fields(f"{place}: parameter {name}", parameter, *PARAMETER):
                values = parameter["values"]
                if not values or not all(isinstance(value, (str, *PLAIN)) for value in values) or len({*values}) < len(values):
                    self.say(f"{place}: parameter {name}", "its values have to be numbers or texts, each once, and one at least")
        for name, measure in workload["measures"].items():
            here = f"{place}: measure {name}"
            if self.fields(here, measure, *MEASURE):
                self.one_of(here, "better", measure["better"], ("higher", "lower", None))
                if "along" in measure:
                    self.fields(f"{here}: along", measure["along"], *ALONG)
                if measure.get("distribution") and measure["unit"] != "s":
                    self.say(here, "a distribution is of times: its unit has to be s")
        if len(self.wrong) > before:
            return
        self.workloads[workload["name"]] = workload
        self.partial_case(f"{place}: first", workload["first"], workload)
        names = collections.Counter(view.get("name") for view in workload["views"] if isinstance(view, dict))
        for view in workload["views"]:
            self.view(f"{place}: view {view.get('name') if isinstance(view, dict) else view}", view, workload)
        for name in (name for name, count in names.items() if count > 1):
            self.say(place, f"two views are called {name}")
        for number, comparison in enumerate(workload["comparisons"], 1):
            here = f"{place}: comparison {number}"
            if self.fields(here, comparison, *COMPARISON):
                self.comparison(here, comparison, workload, run)

    def partial_case(self, place, case, workload):
        for name, value in case.items():
            if self.one_of(place, "parameter", name, tuple(workload["parameters"])):
                self.one_of(place, name, value, tuple(workload["parameters"][name]["values"]))

    def view(self, place, view, workload):
        kind = view.get("kind") if isinstance(view, dict) else None
        if not self.one_of(place, "kind", kind, tuple(VIEWS)):
            return
        wanted, allowed = VIEWS[kind]
        if not self.fields(place, view, {**VIEW, **wanted}, {**allowed, "note": str}):
            return
        measures = view.get("measures", [view["measure"]] if "measure" in view else [])
        if not all([self.one_of(place, "measure", name, tuple(workload["measures"])) for name in measures]):
            return
        for name in (view[key] for key in ("x", "columns") if key in view):
            self.one_of(place, "parameter", name, tuple(workload["parameters"]))
        if kind == "curve" and view["x"] in workload["parameters"]:
            if not all(isinstance(value, PLAIN) for value in workload["parameters"][view["x"]]["values"]):
                self.say(place, f"a curve goes along numbers, which the values of {view['x']} are not")
        for axis, scale in view.get("scales", {}).items():
            self.one_of(place, "axis", axis, ("x", "y"))
            self.one_of(place, "scale", scale, SCALES)
        for field, kinds in (("along", {"line"}), ("distribution", {"distribution", "percentiles"})):
            if kind in kinds and not workload["measures"][measures[0]].get(field):
                self.say(place, f"a view of the kind {kind} wants a measure that has {field}")

    def comparison(self, place, comparison, workload, run):
        self.one_of(place, "measure", comparison["measure"], tuple(workload["measures"]))
        for case in (comparison["case"], comparison.get("to_case", {})):
            self.partial_case(place, case, workload)
        for store in (comparison["of"], *comparison["to"]):
            self.one_of(place, "store", store, tuple(run["stores"]))
        self.one_of(place, "how", comparison["how"], ("ratio", "difference", "value"))
        if (comparison["how"] == "value") == bool(comparison["to"]):
            self.say(place, "a value is held against no store, a ratio or difference against one or more")
        measure = workload["measures"].get(comparison["measure"])
        if len(comparison["to"]) > 1 and measure and measure["better"] is None:
            self.say(place, f"the best of several stores is not known: {comparison['measure']} doesn't say which is better")
        bar = comparison["bar"]
        if bar is not None and (len(bar) != 1 or not {"at_least", "at_most"} & bar.keys()
                                or not all(isinstance(value, PLAIN) for value in bar.values())):
            self.say(place, f"the bar {_short(bar)} is neither {{\"at_least\": x}} nor {{\"at_most\": x}}")

    def lines(self, name, run, fields, take, is_needed=True):
        """What the lines of a file hold, by series."""
        path, series = self.folder / name, {}
        try:
            text = _text(path)
        except FileNotFoundError:
            if is_needed:
                self.say(path, "is missing; a run without samples has an empty one")
            return series
        except (OSError, EOFError, ValueError) as error:
            self.say(path, error)
            return series
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{path}:{number}"
            try:
                given = _parsed(line)
            except ValueError as error:
                self.say(place, f"not an object of JSON: {error}")
                continue
            if self.fields(place, given, *fields) and self.common(place, given, run):
                key = (given["workload"], given["measure"], case_key(given["case"]), given["store"])
                take(place, given, series.setdefault(key, {}))
        return series

    def common(self, place, given, run):
        """What samples and histograms share."""
        workload = self.workloads.get(given["workload"])
        if workload is None:
            return self.one_of(place, "workload", given["workload"], tuple(self.workloads))
        before = len(self.wrong)
        self.one_of(place, "measure", given["measure"], tuple(workload["measures"]))
        self.partial_case(place, given["case"], workload)
        if self.one_of(place, "store", given["store"], tuple(run["stores"])) and "absent" in run["stores"][given["store"]]:
            self.say(place, f"{given['store']} is absent, and yet was measured")
        if given["repetition"] < 1:
            self.say(place, "repetitions count from 1")
        return len(self.wrong) == before

    def sample(self, place, given, found):
        measure = self.workloads[given["workload"]]["measures"][given["measure"]]
        if given["unit"] != measure["unit"]:
            self.say(place, f"its unit is {given['unit']}, that of the measure {measure['unit']}")
        if ("at" in given) != ("along" in measure):
            self.say(place, "at stands where the measure has along, and only there")
        found.setdefault(given["repetition"], []).append((given["value"], given.get("at")))

    def histogram(self, place, given, found):
        measure = self.workloads[given["workload"]]["measures"][given["measure"]]
        if not measure.get("distribution") or given["unit"] != "ns":
            self.say(place, "its measure has to say \"distribution\": true, and its unit has to be ns")
        if given["repetition"] in found:
            self.say(place, f"repetition {given['repetition']} of this series was there before")
        buckets = given["buckets"]
        if not all(isinstance(bucket, list) and len(bucket) == 2 and all(type(number) is int for number in bucket)
                   and bucket[1] > 0 for bucket in buckets) or not buckets:
            self.say(place, "buckets are pairs of whole numbers, [upper bound in ns, how many], and one at least")
        elif any(left[0] >= right[0] for left, right in zip(buckets, buckets[1:])):
            self.say(place, "the upper bounds of buckets rise")
        else:
            found[given["repetition"]] = buckets

    def held_together(self, place, run, samples, histograms):
        """What can only be said once all is read."""
        shapes = {}
        for workload, measure, case, store in (*samples, *histograms):
            shape = shapes.setdefault((workload, measure), tuple(name for name, _ in case))
            if shape != tuple(name for name, _ in case):
                self.say(place, f"{workload}: the cases of {measure} have other parameters here and there: "
                                f"{', '.join(shape)}; {', '.join(name for name, _ in case)}")
        if not run["complete"]:
            return
        measured = {key[:2] for key in (*samples, *histograms)}
        for workload in run["workloads"]:
            if "skipped" in workload:
                continue
            name = workload["name"]
            for measure in workload["measures"]:
                if (name, measure) not in measured:
                    self.say(place, f"{name}: there is no sample of {measure}, and the run is said to be complete")
            for number, comparison in enumerate(workload["comparisons"], 1):
                case = case_key(comparison["case"])
                to_case = case_key(comparison.get("to_case", comparison["case"]))
                for store, where in ((comparison["of"], case), *((to, to_case) for to in comparison["to"])):
                    if (name, comparison["measure"], where, store) not in samples and "absent" not in run["stores"][store]:
                        self.say(place, f"{name}: comparison {number} is about nothing: no sample of {store} in that case")


def _parsed(text):
    def refuse(word):
        raise ValueError(f"{word} is no number of JSON")

    return json.loads(text, parse_constant=refuse)


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
