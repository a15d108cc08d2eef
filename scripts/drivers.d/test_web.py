"""Workloads over HTTP, at tiny sizes: the driver measures all that is defined, names a missing server with the reason, and an interrupted
run leaves no file and no process behind. BENCH_HTTP_PROGRAM names the program to test."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import tomllib
import unittest
import unittest.mock
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / part) for part in ("bench/drivers/web", "bench/drivers/python", "scripts/common.d")]
import contenders  # noqa: E402
import procedures  # noqa: E402

DRIVER = [sys.executable, str(ROOT / "bench/drivers/web/web.py")]
# A window ends by its requests, however slow the machine is.
TINY = {"requests": 12, "concurrency": 3, "connections": 2, "seconds": 60, "at_most": 20}
# What the tests wait for comes soon, or never.
PATIENCE_SECONDS = 120


def defined():
    """The definitions whose driver this is, by name."""
    known = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "bench/workloads").glob("*.toml")}
    return {name: told for name, told in known.items() if any("bench/drivers/web/web.py" in command for command in told.get("drivers", []))}


@unittest.skipUnless(os.environ.get("BENCH_HTTP_PROGRAM"), "BENCH_HTTP_PROGRAM names no program")
class Web(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="eyewall-web-test.")
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name) / "scratch"
        self.scratch.mkdir()
        # Every process that it starts has the mark, too.
        self.mark = f"EYEWALL_WEB_TEST={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.environment = os.environ | {name: value, "TMPDIR": str(self.scratch), "EYEWALL_PROGRAM": "/no/such/eyewall"}

    def driver(self, given, *arguments):
        """What it says on both channels, and its exit code."""
        done = subprocess.run([*DRIVER, *arguments], input=given, capture_output=True, text=True, check=False, env=self.environment)
        return done.returncode, done.stdout, done.stderr

    def asked(self, **request):
        """The answer to a request, line by line."""
        code, said, complained = self.driver(json.dumps(request))  # tidy: word, the library's
        self.assertEqual(code, 0, complained)
        return [json.loads(line) for line in said.splitlines()]

    def tiny(self, name, stores, **settings):
        """A request for a workload as defined, in its first case."""
        told = defined()[name]
        chosen = {name: value["quick"] if isinstance(value, dict) else value for name, value in told["settings"].items()}
        return {
            "do": "measure", "workload": name, "procedure": told["procedure"], "case": {}, "stores": stores, "repetitions": [1, 2],
            "parameters": {name: parameter["values"][:1] for name, parameter in told.get("parameters", {}).items()},
            "settings": {**chosen, **TINY, **settings}, "scratch": {"disk": str(self.scratch), "shm": "/dev/shm"}, "quick": True}

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

    def test_all_that_is_defined_is_measured(self):
        for name, store in (("http", "no cache"), ("http-miss", "bare-proxy")):
            lines = self.asked(**self.tiny(name, [store]))
            figures = [line[kind] for line in lines for kind in ("sample", "histogram") if kind in line]
            self.assertEqual({one["measure"] for one in figures}, set(defined()[name]["measures"]), lines)
            self.assertEqual({one["store"] for one in figures}, {store})
            if name == "http":
                # The origin alone has to do all of a burst itself.
                self.assertEqual([one["value"] for one in figures if one["measure"] == "at_origin"], [12, 12])
                bursts = [one["buckets"] for one in figures if one["measure"] == "burst"]
                self.assertTrue(all(sum(count for _, count in buckets) <= 12 for buckets in bursts), bursts)
        self.expect_nothing_left()

    def test_a_server_that_is_missing_is_absent_with_its_reason(self):
        lines = self.asked(**self.tiny("http", ["eyewall serve"]))
        self.assertEqual(lines, [{"store": "eyewall serve", "absent": "/no/such/eyewall is no program"}])
        lost = contenders.Contender("other", None, "no-such-server", "-v")
        with unittest.mock.patch.dict(contenders.PACKAGES, {"no-such-server": "a-package"}):
            self.assertEqual(lost.as_store(None)["absent"], "no-such-server is missing (apt-get install a-package)")

    def test_an_interrupted_run_leaves_nothing(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            # The burst gives the first samples; the loop behind it would go on for an hour.
            request = self.tiny("http", ["no cache"], seconds=3600, at_most=None)
            process = subprocess.Popen(DRIVER, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            process.stdin.write(json.dumps(request))  # tidy: word, the library's
            process.stdin.close()
            process.stdin = None
            said = next((line for line in process.stdout if "sample" in line), None)
            self.assertIsNotNone(said, "it ended before it measured")
            process.send_signal(number)
            _, complained = process.communicate(timeout=PATIENCE_SECONDS)
            self.assertEqual(process.returncode, code, complained)
            self.expect_nothing_left()

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
        wrong = (("nothing", "no JSON"), ("[]", "no object"), (json.dumps({"do": "sing"}), '"do"'),  # tidy: word, the library's
                 (json.dumps({**sound, "case": 1}), "the request's case is 1"),  # tidy: word, the library's
                 (json.dumps({**sound, "procedure": "x"}), "no procedure x; there are http,"),  # tidy: word, the library's
                 (json.dumps({**sound, "stores": ["x"]}), "no store x for http; there are eyewall serve,"))  # tidy: word, the library's
        for given, words in wrong:
            code, said, complained = self.driver(given)
            self.assertEqual((code, said, words in complained), (2, "", True), complained)

    def test_arguments_are_refused_with_what_to_call_instead(self):
        code, said, complained = self.driver("", "http")
        self.assertEqual((code, said, "make bench ARGS=serve" in complained), (2, "", True), complained)

    def test_all_stores_are_listed_and_nothing_is_built(self):
        del self.environment["EYEWALL_PROGRAM"]
        listed = {line["store"]: line for line in self.asked(do="list")}
        self.assertEqual(set(listed), set(contenders.ALL))
        self.assertEqual(listed["eyewall serve"], {"store": "eyewall serve", "kind": "ours", "version": None})
        for line in listed.values():
            self.assertTrue("absent" in line or line["kind"] in ("ours", "other", "reference"), line)

    def test_every_definition_names_what_there_is(self):
        self.assertEqual({told["procedure"] for told in defined().values()}, set(procedures.ALL))
        for name, told in defined().items():
            self.assertEqual(set(told["stores"]) - set(procedures.ALL[told["procedure"]][0]), set(), name)
