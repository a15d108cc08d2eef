"""`scripts/speed`, as it is called by hand and as eyewall-bench calls it, on tiny sizes. BENCH_HTTP_PROGRAM names a program to test."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / part) for part in ("scripts/speed.d", "scripts/records.d", "scripts/common.d")]
import contenders  # noqa: E402
import definitions  # noqa: E402
import form  # noqa: E402
import procedures  # noqa: E402
from recorder import Recorder  # noqa: E402
from servers import Failed  # noqa: E402

SPEED = [sys.executable, str(ROOT / "scripts/speed")]
# A window ends by its requests, however slow the machine is.
TINY = [f"--setting={name}" for name in ("requests=12", "concurrency=3", "connections=2", "seconds=60", "at_most=20")]
# What is waited for comes soon, or never.
PATIENCE_SECONDS = 120


class Speed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="eyewall-speed-test.")
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"
        self.scratch = pathlib.Path(folder.name) / "scratch"
        self.scratch.mkdir()
        # Whoever it starts has the mark, too.
        self.mark = f"EYEWALL_SPEED_TEST={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.environment = os.environ | {name: value, "TMPDIR": str(self.scratch), "EYEWALL_PROGRAM": "/no/such/eyewall"}

    def speed(self, *arguments, given=None):
        """What it says on both channels, and its exit code."""
        done = subprocess.run([*SPEED, *map(str, arguments)], input=given, capture_output=True, text=True, check=False,
                              env=self.environment)
        return done.returncode, done.stdout, done.stderr

    def asked(self, **request):
        """The answer to a request, line by line."""
        code, said, complained = self.speed("--driver", given=json.dumps(request))  # tidy: word, the library's
        self.assertEqual(code, 0, complained)
        return [json.loads(line) for line in said.splitlines()]

    def the_record(self):
        """The one that was made, which is sound."""
        made, = self.out.iterdir()
        return form.read(made)

    def expect_nothing_left(self):
        self.assertEqual(list(self.scratch.iterdir()), [])
        left = []
        for process in pathlib.Path("/proc").iterdir():
            try:
                if process.name.isdigit() and self.mark.encode() in (process / "environ").read_bytes():
                    left.append((process / "cmdline").read_bytes())
            except OSError:
                pass
        self.assertEqual(left, [])

    def test_a_tiny_run_writes_a_sound_record_and_prints_it(self):
        code, said, complained = self.speed("http", "http-miss", "--quick", "--only", "no cache", "--only", "bare-proxy",
                                            "--only", "eyewall serve", *TINY, "--out", self.out)
        self.assertEqual(code, 0, complained)
        record = self.the_record()
        self.assertEqual((record.run["complete"], record.run["kind"]), (True, "quick"))
        for store, reference in (("no cache", "http"), ("bare-proxy", "http-miss")):
            self.assertNotIn("absent", record.run["stores"][store])
            measured = {key[1] for key in record.samples if key[0] == reference and key[3] == store}
            wanted = next(one for one in record.run["workloads"] if one["name"] == reference)["measures"]
            distributions = {key[1] for key in record.histograms if key[0] == reference and key[3] == store}
            self.assertEqual(measured | distributions, set(wanted))
        # The origin alone has to do all of a burst itself.
        at_origin = [samples for key, samples in record.samples.items() if key[1] == "at_origin"]
        self.assertTrue(all(value == 12 for samples in at_origin for (value, _), in samples.values()), at_origin)
        self.assertTrue(all(sum(count for _, count in buckets) <= 12 for key, repetitions in record.histograms.items()
                            for buckets in repetitions.values() if key[1] == "burst"))
        for words in ("## HTTP\n", "eyewall serve is absent: /no/such/eyewall is no program", "The setting requests was 12", "| p999 |"):
            self.assertIn(words, said)
        self.expect_nothing_left()

    def test_a_server_that_is_missing_is_absent_with_its_reason(self):
        self.speed("http", "--quick", "--only", "eyewall serve", *TINY, "--out", self.out)
        run = self.the_record().run
        self.assertEqual(run["stores"]["eyewall serve"]["absent"], "/no/such/eyewall is no program")
        self.assertEqual(run["workloads"][0]["skipped"], "none of its stores could be measured")
        lost = contenders.Contender("other", None, "no-such-server", "-v")
        with unittest.mock.patch.dict(contenders.PACKAGES, {"no-such-server": "a-package"}):
            self.assertEqual(lost.as_store(None)["absent"], "no-such-server is missing (apt-get install a-package)")

    def test_an_interrupted_run_leaves_a_sound_record_and_no_process(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            # The burst gives the first samples; the loop behind it would go on for an hour.
            arguments = ["http", "--quick", "--only", "no cache", *TINY[:3], "--setting=seconds=3600", "--out", self.out / number.name]
            process = subprocess.Popen([*SPEED, *map(str, arguments)], env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.wait_for_a_sample(self.out / number.name, process)
            process.send_signal(number)
            _, complained = process.communicate(timeout=PATIENCE_SECONDS)
            self.assertEqual(process.returncode, code, complained)
            made, = (self.out / number.name).iterdir()
            record = form.read(made)
            self.assertEqual((record.run["complete"], bool(record.samples)), (False, True))
            self.expect_nothing_left()

    def wait_for_a_sample(self, out, process):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(path.stat().st_size for path in out.glob("*/samples.jsonl")):
            self.assertIsNone(process.poll(), "it ended before it measured")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_a_request_is_answered_line_by_line(self):
        both = {"eyewall (HTTP)", "file-per-entry (HTTP)"}
        for traffic, stores in (("many pages", {*both, "bare"}), ("misses", both)):
            lines = self.asked(
                do="measure", workload="http-stores", procedure="http-stores", case={}, parameters={"size": ["1 KB"], "traffic": [traffic]},
                settings={"connections": 2, "seconds": 60, "at_most": 20, "many_bytes": 1 << 16}, repetitions=[1, 2],
                stores=["eyewall (HTTP)", "file-per-entry (HTTP)", "bare"], scratch={"disk": str(self.scratch), "shm": "/dev/shm"}, quick=True)
            # A client that was busy is no fault.
            told = [line for line in lines if "note" in line and "client's core" not in line["note"] or "absent" in line]
            self.assertEqual(told, [])
            samples = [line["sample"] for line in lines if "sample" in line]
            self.assertEqual({(one["store"], one["repetition"]) for one in samples if one["measure"] == "rate"},
                             {(store, repetition) for store in stores for repetition in (1, 2)})
            self.assertTrue(all(one["value"] >= 0 and one["case"] == {"size": "1 KB", "traffic": traffic} for one in samples))
            self.assertEqual(len([line for line in lines if "histogram" in line]), 2 * len(stores))
            # They take turns: each repetition has all of them before the next begins.
            order = [one["repetition"] for one in samples]
            self.assertEqual(order, sorted(order))
        self.expect_nothing_left()

    def test_what_fails_is_a_note_and_no_figure(self):
        lines = self.asked(
            do="measure", workload="http-slow", procedure="http-slow", case={}, stores=["bare"], repetitions=[1],
            settings={"slow_clients": 1 << 30, "page_bytes": 1, "slow_bytes": 1, "connections": 1, "seconds": 1},
            scratch={"disk": str(self.scratch)})
        self.assertEqual([list(line) for line in lines], [["note"]])
        self.assertIn("descriptors", lines[0]["note"])

    def test_a_wrong_request_is_told_and_nothing_is_answered(self):
        sound = {"do": "measure", "workload": "x", "procedure": "http", "case": {}, "settings": {}, "stores": [], "repetitions": [1],
                 "scratch": {"disk": "/"}}
        wrong = (("nothing", "no JSON"), ("[]", '"do"'), (json.dumps({"do": "sing"}), '"do"'),  # tidy: word, the library's
                 (json.dumps({**sound, "case": 1}), "the request's case is 1"),  # tidy: word, the library's
                 (json.dumps({**sound, "procedure": "x"}), "no procedure x; there are http,"),  # tidy: word, the library's
                 (json.dumps({**sound, "stores": ["x"]}), "no store x for http; there are eyewall serve,"))  # tidy: word, the library's
        for given, words in wrong:
            code, said, complained = self.speed("--driver", given=given)
            self.assertEqual((code, said, words in complained), (2, "", True), complained)

    def test_what_is_not_there_is_told(self):
        wrong = ((("nothing",), 3, "no workload nothing; there are http,"), (("http", "--only", "x"), 3, "no store x in http"),
                 (("http", "--setting=x=1"), 3, "no setting x in http"), (("--setting=x",), 2, "NAME=VALUE with a number"))
        for arguments, code, words in wrong:
            found, _, complained = self.speed(*arguments, "--out", self.out)
            self.assertEqual((found, words in complained), (code, True), complained)
        self.assertFalse(self.out.exists())

    def test_all_stores_are_listed_and_nothing_is_built(self):
        del self.environment["EYEWALL_PROGRAM"]
        listed = {line["store"]: line for line in self.asked(do="list")}
        self.assertEqual(set(listed), set(contenders.ALL))
        self.assertEqual(listed["eyewall serve"], {"store": "eyewall serve", "kind": "ours", "version": None})
        for line in listed.values():
            self.assertTrue("absent" in line or line["kind"] in ("ours", "other", "reference"), line)

    def test_every_definition_is_sound_whole_and_quick(self):
        class Options:
            scratch = self.scratch

        for Options.quick in (False, True):
            known = definitions.read(ROOT / "bench/workloads", Options.quick)
            stores = {store: {"kind": contenders.ALL[store].kind, "version": None}
                      for definition in known.values() for store in definition.stores}
            recorder = Recorder(self.out, Options, [definition.workload(stores) for definition in known.values()], stores)
            recorder.end(False)
            run = form.read(recorder.folder).run
            self.assertEqual([workload["name"] for workload in run["workloads"]], list(known))
            for definition in known.values():
                self.assertEqual(set(definition.stores) - set(procedures.ALL[definition.procedure][0]), set(), definition.name)
                if not Options.quick:
                    self.assertEqual(len(definition.workload(stores)["comparisons"]), len(definition.told["comparisons"]))

    def test_a_definition_that_lacks_something_says_so(self):
        folder = self.out
        folder.mkdir()
        for text, words in (("order = ", "Invalid value"), ("order = 1\nprocedure = 'x'", "stores is missing")):
            (folder / "x.toml").write_text(text)
            with self.assertRaisesRegex(Failed, f"x.toml.*{words}"):
                definitions.read(folder, False)


if __name__ == "__main__":
    unittest.main()
