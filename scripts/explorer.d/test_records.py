"""`scripts/records`, as it is called: published records are sound, and what is wrong with a record is told."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import invented

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PUBLISHED = sorted((ROOT / "bench/record").iterdir())


def records(*arguments):
    """What it says on both channels, and its exit code."""
    done = subprocess.run([sys.executable, ROOT / "scripts/records", *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Records(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.one = invented.record("invented-a", "invented-8cores", 1)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="eyewall-records.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def invented(self):
        return self.one.write(self.folder)

    def test_an_invented_record_of_every_shape_is_sound(self):
        code, said = records("check", self.invented())
        self.assertEqual((code, "distributions" in said), (0, True), said)

    def test_every_published_record_is_sound(self):
        self.assertTrue(PUBLISHED)
        code, said = records("check", ROOT / "bench/record")
        self.assertEqual((code, len(said.splitlines())), (0, len(PUBLISHED)), said)

    def test_what_is_wrong_is_told_with_its_place(self):
        sample = '{"workload":"sweep","measure":"rate","case":{},"store":"eyewall","repetition":1,"unit":"1/s","value":1,"at":1}'
        cases = (
            ("record.json", lambda text: text.replace('"format": 1', '"format": 2'), "format 1"),
            ("record.json", lambda text: text.replace('"id": "invented-a"', '"id": "another"'), "directory's name"),
            ("record.json", lambda text: text.replace('"cores"', '"core"'), "there is no field core"),
            ("record.json", lambda text: text.replace('"kind": "curve"', '"kind": "pie"', 1), "is none of curve"),
            ("record.json", lambda text: text.replace('"kind": "whole"', '"kind": "half"'), "is none of whole, quick"),
            ("record.json", lambda text: text.replace('"at_least": 20', '"over": 20'), "neither"),
            ("record.json", lambda text: text.replace('"readers": 64, "size": "100 B"',
             '"readers": 64, "size": "1 B"', 1), "'1 B' is none of"),
            ("record.json",
    lambda text: text.replace('"of": "eyewall", "to": ["quick_cache"]',
    '"of": "eyewall", "to": ["nobody"]'),
     "'nobody' is none of"),
            ("record.json", lambda text: "{", "record.json"),
            ("samples.jsonl", lambda text: text + "nothing\n", "not an object"),
            ("samples.jsonl", lambda text: text + sample.replace('"value":1', '"value":NaN') + "\n", "NaN is no number"),
            ("samples.jsonl", lambda text: text + sample.replace("1/s", "s") + "\n", "its unit is s"),
            ("samples.jsonl", lambda text: text + sample.replace(',"at":1', "") + "\n", "at stands"),
            ("samples.jsonl", lambda text: text + sample.replace('"eyewall"', '"IPC::MM"') + "\n", "is absent, and yet"),
            ("samples.jsonl", lambda text: text + sample.replace('"repetition":1', '"repetition":0') + "\n", "count from 1"),
            ("samples.jsonl", lambda text: text + sample.replace('"rate"', '"speed"') + "\n", "'speed' is none of"),
            ("samples.jsonl", lambda text: "\n".join(line for line in text.splitlines() if '"sweep"' not in line), "no sample of rate"),
            ("histograms.jsonl", lambda text: text.replace("[[", "[[999999999, 1], [", 1), "upper bounds"),
            ("histograms.jsonl", lambda text: text.splitlines()[0] + "\n" + text, "was there before"),
        )
        for number, (name, change, words) in enumerate(cases):
            folder = self.folder / str(number)
            path = self.one.write(folder) / name
            before = path.read_text()
            path.write_text(change(before))
            self.assertNotEqual(path.read_text(), before, f"case {number} changes nothing")
            code, said = records("check", folder)
            self.assertEqual((code, words in said, name in said or "record.json" in said),
                             (1, True, True), f"case {number}: {said}")
            self.assertEqual(records("index", folder / "out", folder)[0], 1)
            self.assertFalse((folder / "out").exists())

    def test_a_published_record_is_packed_and_says_the_same(self):
        made, published = self.invented(), self.folder / "published"
        code, said = records("publish", made, "--to", published)
        self.assertEqual(code, 0, said)
        folder = published / made.name
        self.assertEqual({path.name for path in folder.iterdir()}, {"record.json", "samples.jsonl", "histograms.jsonl.gz"})
        told = [records("table", one)[1] for one in (made, folder)]
        self.assertEqual(told[0], told[1])
        packed = folder / "histograms.jsonl.gz"
        code, said = records("publish", made, "--to", published)
        self.assertEqual((code, "stays as it is" in said), (1, True), said)
        packed.write_bytes(packed.read_bytes()[:40])
        code, said = records("check", folder)
        self.assertEqual((code, "histograms.jsonl" in said), (1, True), said)

    def test_a_quick_run_is_not_published(self):
        made = self.invented()
        path = made / "record.json"
        path.write_text(path.read_text().replace('"kind": "whole"', '"kind": "quick"'))
        code, said = records("publish", made, "--to", self.folder / "published")
        self.assertEqual((code, "too short" in said, (self.folder / "published").exists()), (1, True, False), said)

    def test_a_run_that_was_interrupted_may_lack_samples(self):
        made = self.invented()
        path = made / "record.json"
        path.write_text(path.read_text().replace('"complete": true', '"complete": false'))
        (made / "samples.jsonl").write_text("")
        code, said = records("check", made)
        self.assertEqual(code, 0, said)

    def test_a_directory_without_records_is_an_error(self):
        code, said = records("check", self.folder)
        self.assertEqual((code, "neither a record nor" in said), (1, True), said)

    def test_the_index_lists_the_newest_first_and_forgets_what_is_gone(self):
        self.invented()
        older = next(folder for folder in PUBLISHED if folder.name.startswith("engine-"))
        shutil.copytree(older, self.folder / older.name)
        out = self.folder / "out"
        out.mkdir()
        (out / "gone.js").write_text("")
        code, said = records("index", out, self.folder)
        self.assertEqual((code, said), (0, f"{out}: 2 records\n"))
        told = (out / "index.js").read_text()
        listed = json.loads(told[told.index("(") + 1:told.rindex(")")])
        self.assertEqual([one["id"] for one in listed], ["invented-a", older.name])
        self.assertEqual({path.name for path in out.iterdir()}, {"index.js", "invented-a.js", f"{older.name}.js"})

    def test_runs_of_one_machine_and_commit_are_shown_as_one(self):
        older = invented.part("older", "2026-11-20T10:00:00Z", "1111111", [invented.concurrency, invented.places])
        newer = invented.part("newer", "2026-11-21T10:00:00Z", "1111111", [invented.places, invented.modules])
        newer.run["machine"] = {**newer.run["machine"], "load_at_start": 0.7}
        index, loaded = self._indexed(older, newer)
        self.assertEqual([(one["id"], one["merged"], one["isComplete"]) for one in index], [("newer.merged", ["newer", "older"], False)])
        one = loaded("newer.merged")
        self.assertEqual([workload["name"] for workload in one["run"]["workloads"]], ["places", "modules", "concurrency"])
        self.assertIn("Merged from the runs newer, older.", one["run"]["notes"])
        # Of a workload in both, the newest run's samples and no others.
        for workload, run in (("places", newer), ("concurrency", older), ("modules", newer)):
            self.assertEqual(sorted(value for series in one["series"] if series["workload"] == workload for _, value in series["values"]),
                             sorted(sample["value"] for sample in run.samples if sample["workload"] == workload))

    def test_what_may_differ_is_not_merged(self):
        def pair(**changes):
            older = invented.part("older", "2026-11-20T10:00:00Z", "1111111", [invented.concurrency])
            return older, invented.part("newer", "2026-11-21T10:00:00Z", changes.pop("commit", "1111111"), [invented.modules], **changes)

        machine = invented.part("any", "", "", []).run["machine"]
        stores = {**invented.STORES, "sqlite": {"kind": "other", "version": "another"}}
        for changes in ({"commit": "3333333"}, {"kind": "quick"}, {"complete": False}, {"machine": {**machine, "kernel": "linux 7"}},
                        {"stores": stores}):
            index, _ = self._indexed(*pair(**changes))
            self.assertEqual([one["id"] for one in index], ["newer", "older"], changes)
        for commit in (None, "1111111+changes"):
            older, newer = pair(commit=commit)
            older.run["commit"] = commit
            self.assertEqual(len(self._indexed(older, newer)[0]), 2, commit)

    def test_a_record_covers_the_suite_if_it_has_half_of_its_workloads(self):
        names = sorted(path.stem for path in (ROOT / "bench/workloads").glob("*.toml"))
        half = -(-len(names) // 2)
        for count, changes, is_complete in ((half, {}, True), (half - 1, {}, False), (half, {"kind": "quick"}, False),
                                            (half, {"complete": False}, False)):
            one = invented.whole("one", "2026-11-20T10:00:00Z", names[:count])
            one.run.update(changes)
            self.assertEqual([told["isComplete"] for told in self._indexed(one)[0]], [is_complete], (count, changes))
        # Two halves of it, merged.
        one = invented.whole("one", "2026-11-20T10:00:00Z", names[:half - 1])
        other = invented.whole("other", "2026-11-21T10:00:00Z", names[half - 1:half])
        self.assertEqual([told["isComplete"] for told in self._indexed(one, other)[0]], [True])

    def _indexed(self, *made):
        """The list that is written of these records, and how to read one."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        for one in made:
            one.write(folder)
        code, said = records("index", folder / "out", folder)
        self.assertEqual(code, 0, said)

        def read(name):
            text = (folder / "out" / f"{name}.js").read_text()
            return json.loads(text[text.index("(") + 1:text.rindex(")")])
        return read("index"), read

    def test_two_records_of_one_name_are_refused(self):
        made = self.invented()
        code, said = records("index", self.folder / "out", made, made)
        self.assertEqual((code, "two records are called invented-a" in said), (1, True), said)


if __name__ == "__main__":
    unittest.main()
