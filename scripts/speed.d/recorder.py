"""A record in the making (bench/RECORD.md). It is sound at any time, and says that it isn't complete until it is."""
import datetime
import json
import os

import machine
from form import FORMAT

# Of a record's directory, in the order of writing.
RUN, SAMPLES, HISTOGRAMS = "record.json", "samples.jsonl", "histograms.jsonl"


class Recorder:
    """Takes the lines of answers, and keeps them."""

    def __init__(self, parent, options, workloads, stores):
        now = datetime.datetime.now(datetime.timezone.utc)
        looked = machine.look({"disk": options.scratch})
        kind = "quick" if options.quick else "whole"
        name = f"http-{now:%Y-%m-%d-%H%M%S}-{looked['name']}{'-quick' if options.quick else ''}"
        self.folder = parent / name
        self.run = {
            "format": FORMAT, "id": name, "title": f"HTTP servers, {looked['name']}, {now:%Y-%m-%d}", "began": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "kind": kind, "complete": False, "machine": looked, "commit": machine.commit(), "seed": None, "stores": stores,
            "workloads": workloads, "notes": [],
        }
        self.measured = set()
        self.folder.mkdir(parents=True)
        self._write()
        self.files = {file: open(self.folder / file, "w", encoding="utf-8") for file in (SAMPLES, HISTOGRAMS)}

    def note(self, words):
        if words not in self.run["notes"]:
            self.run["notes"].append(words)
            self._write()

    def take(self, workload, line):
        """A line of an answer."""
        if "sample" in line:
            sample = line["sample"]
            self._line(SAMPLES, workload, sample, {
                "unit": workload["measures"][sample["measure"]]["unit"], "value": sample["value"]})
        elif "histogram" in line:
            histogram = line["histogram"]
            self._line(HISTOGRAMS, workload, histogram, {"unit": "ns", "buckets": histogram["buckets"]})
        elif "absent" in line:
            self.run["stores"][line["store"]]["absent"] = line["absent"]
            self._write()
        elif "note" in line:
            self.note(line["note"])

    def _line(self, file, workload, told, more):
        case = told["case"]
        whole = {"workload": workload["name"], "measure": told["measure"], "case": case, "store": told["store"],
                 "repetition": told["repetition"], **more}
        self.measured.add((workload["name"], told["measure"]))
        self.measured.add((workload["name"], told["measure"], _key(case), told["store"]))
        self.files[file].write(_json(whole) + "\n")
        self.files[file].flush()

    def end(self, is_complete):
        """Closes the record; one that is complete says nothing of what could not be measured."""
        if is_complete:
            for workload in self.run["workloads"]:
                self._prune(workload)
        self.run["complete"] = is_complete
        self._write()
        for file in self.files.values():
            file.close()

    def _prune(self, workload):
        name = workload["name"]
        lost = [measure for measure in workload["measures"] if (name, measure) not in self.measured]
        if len(lost) == len(workload["measures"]):
            workload["skipped"] = "none of its stores could be measured"
            return
        for measure in lost:
            workload["measures"].pop(measure)
        workload["views"] = [view for view in (_without(view, lost) for view in workload["views"]) if view]
        comparisons = [comparison for comparison in workload["comparisons"]
                       if comparison["measure"] not in lost and self._is_measured(name, comparison)]
        gone = len(workload["comparisons"]) - len(comparisons)
        workload["comparisons"] = comparisons
        if gone:
            self.note(f"{name}: {gone} comparisons are left out, since one side was not measured.")

    def _is_measured(self, name, comparison):
        here, there = comparison["case"], comparison.get("to_case", comparison["case"])
        sides = [(here, comparison["of"]), *((there, store) for store in comparison["to"])]
        return all((name, comparison["measure"], _key(case), store) in self.measured or "absent" in self.run["stores"][store]
                   for case, store in sides)

    def _write(self):
        """Whole or not at all."""
        beside = self.folder / f"{RUN}.new"
        beside.write_text(_json(self.run, indent=1) + "\n", encoding="utf-8")
        os.replace(beside, self.folder / RUN)


def _key(case):
    return tuple(sorted(case.items()))


def _without(view, lost):
    """A view without the measures that are lost; None where nothing is left of it."""
    if "measures" in view:
        left = [measure for measure in view["measures"] if measure not in lost]
        return {**view, "measures": left} if left else None
    return None if view.get("measure") in lost else view


def _json(value, **how):
    return json.dumps(value, ensure_ascii=False, **how)  # tidy: word, the library's
