"""What the tests of the drivers stand on: two scratch directories that have to be empty again, and a record of what was measured."""
import json
import pathlib
import tempfile
import time
import unittest

import asked
import form

OURS_ELSEWHERE = "eyewall"
PATIENCE_SECONDS = 60
MACHINE = {"name": "drivers-test", "cpu": "any", "cores": 1, "memory_mib": 1, "kernel": "any", "storage": [], "governor": None,
           "load_at_start": None, "noise": None}


class OnScratch(unittest.TestCase):
    """A test with a directory on the disk and one in shared memory. Nothing may be left in them."""

    def setUp(self):
        self.scratch = {}
        for place, parent in (("disk", None), ("shm", "/dev/shm")):
            folder = tempfile.TemporaryDirectory(prefix="eyewall-drivers.", dir=parent)
            self.addCleanup(folder.cleanup)
            self.scratch[place] = pathlib.Path(folder.name)

    def expect_nothing_left(self):
        for folder in self.scratch.values():
            self.assertEqual([], [path.name for path in folder.iterdir()])

    def ask(self, driver, request):
        """A good request: its answer, of which nothing is left but the lines."""
        answer = asked.ask(driver, request)
        self.assertEqual((0, ""), (answer.code, answer.words))
        self.expect_nothing_left()
        return answer


def listed(driver):
    """The stores of a driver, by name."""
    return {line["store"]: line for line in asked.ask(driver, {"do": "list"}).lines}


def facts_of(line):
    """What a record says of a store that was listed by this line."""
    absent = {"absent": line["absent"]} if "absent" in line else {}
    return {"kind": line.get("kind", "other"), "version": line.get("version"), **absent}


def wait_until(test, is_so):
    """Fails the test where that doesn't come."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        test.assertLess(time.monotonic(), deadline, "the driver did not come to work")
        time.sleep(0.02)


def write_record(folder, workload, name, stores, lines):
    """A record of what drivers answered, with the comparisons of what was measured."""
    samples = [sample_of(workload, name, case, line["sample"]) for case, line in lines if "sample" in line]
    cases = {(sample["measure"], sample["store"], form.case_key(sample["case"])) for sample in samples}

    def is_measured(comparison):
        to_case = comparison.get("to_case", comparison["case"])
        pairs = [(comparison["of"], comparison["case"]), *((store, to_case) for store in comparison["to"])]
        return all((comparison["measure"], store, form.case_key(case)) in cases for store, case in pairs)

    definition = {key: workload[key] for key in ("title", "about", "seed", "repetitions", "parameters", "measures", "views", "first")}
    definition["measures"] = {measure: {"better": None, **told} for measure, told in workload["measures"].items()}
    definition["first"] = {key: value for key, value in workload["first"].items() if value in workload["parameters"][key]["values"]}
    comparisons = [{"bar": None, "aim": None, **one} for one in workload.get("comparisons", []) if is_measured(one)]
    is_complete = {measure for measure, *_ in cases} == workload["measures"].keys()
    run = {"format": 1, "id": folder.name, "title": "Drivers", "began": "2026-11-22", "kind": "quick", "complete": is_complete,
           "machine": MACHINE, "commit": None, "seed": None, "stores": stores, "notes": [], "workloads": [{"name": name, **definition, "comparisons": comparisons}]}
    folder.mkdir()
    (folder / "record.json").write_text(json.dumps(run))  # tidy: word, the library's
    (folder / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))  # tidy: word, the library's
    return form.read(folder)


def sample_of(workload, name, case, sample):
    return {"workload": name, "unit": workload["measures"][sample["measure"]]["unit"], **sample, "case": {**case, **sample.get("case", {})}}
