"""Files by web frameworks: each framework is measured with one reader and with several, and by its bytes alone."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import asked
import stage
from test_ends import processes_of

DEFINITION = asked.definition("served-files")
DRIVER = DEFINITION["drivers"][0]
# A window ends by its requests, however slow the machine is.
TINY = {**DEFINITION["settings"], "small_files": 6, "at_most": 20,
        "seconds": {words: 60 for words in ("small files", "1 MB")}}
PARAMETERS = {"files": ["small files", "1 MB"], "readers": [1, 3]}
PROGRAMS = ("BENCH_HTTP_PROGRAM", "BENCH_FRAMEWORKS_PROGRAM")
# What answers by a wrong byte, by no length, and not by 200: in the place of a framework.
WRONG = '''#!{python}
import http.server, sys
class Wrong(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response({status})
        if {length} is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str({length}))
        self.end_headers()
        self.wfile.write({body})
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Wrong)
print(f"wrong on http://127.0.0.1:{{server.server_port}}", flush=True)
server.serve_forever()
'''


@unittest.skipUnless(all(os.environ.get(name) for name in PROGRAMS), f"{' and '.join(PROGRAMS)} name no programs")
class ServedFiles(stage.OnScratch):
    def setUp(self):
        super().setUp()
        # nginx's workers, started by root, are somebody else.
        self.scratch["disk"].chmod(0o755)

    def request(self, stores, **more):
        request = asked.request({**DEFINITION, "settings": TINY}, "served-files", self.scratch, stores=stores, **more)
        return {**request, "parameters": {name: values for name, values in PARAMETERS.items() if name not in request["case"]}}

    def test_every_server_gives_a_sound_record(self):
        listed = stage.listed(DRIVER)
        answer = self.ask(DRIVER, self.request(DEFINITION["stores"], repetitions=[1, 2]))
        # A client that was busy is no fault.
        self.assertEqual([], [note for note in answer.of("note") if "client's core" not in note])
        stores = {name: stage.facts_of(listed[name]) for name in DEFINITION["stores"]}
        workload = {**DEFINITION, "parameters": {
            name: {**parameter, "values": PARAMETERS[name]} for name, parameter in DEFINITION["parameters"].items()}}
        lines = [({}, line) for line in answer.lines]
        stage.write_record(self.scratch["disk"] / "record", workload, "served-files", stores, lines)
        there = [name for name in DEFINITION["stores"] if "absent" not in listed[name]]
        rates = [(one["store"], one["case"]["files"], one["case"]["readers"], one["repetition"])
                 for one in answer.of("sample") if one["measure"] == "rate"]
        self.assertEqual(sorted((name, files, readers, repetition) for name in there for files in PARAMETERS["files"]
                                for readers in PARAMETERS["readers"] for repetition in (1, 2)), sorted(rates))
        figures = answer.of("sample") + answer.of("histogram")
        self.assertEqual(set(DEFINITION["measures"]), {one["measure"] for one in figures})
        self.assertTrue(all(sum(count for _, count in one["buckets"]) == 20 for one in answer.of("histogram")))

    def test_a_server_that_answers_by_something_else_is_not_measured(self):
        for status, length, body, words in (
                (200, 1 << 20, "bytes(1 << 20)", "other bytes"), (404, 0, "b''", "404"), (200, None, "b'0\\r\\n\\r\\n'", "None bytes")):
            folder = tempfile.TemporaryDirectory(prefix="eyewall-drivers.")
            self.addCleanup(folder.cleanup)
            program = pathlib.Path(folder.name) / "wrong"
            program.write_text(WRONG.format(python=sys.executable, status=status, length=length, body=body))
            program.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, BENCH_FRAMEWORKS_PROGRAM=str(program)):
                answer = self.ask(DRIVER, self.request(["actix-files"], case={"files": "1 MB", "readers": 1}))
            self.assertEqual([], answer.of("sample"))
            self.assertEqual(1, len(answer.of("note")))
            self.assertIn(words, answer.of("note")[0])

    def test_a_signal_leaves_neither_file_nor_process(self):
        settings = {**TINY, "seconds": {"1 MB": 3600}, "at_most": None}
        for number in (signal.SIGTERM, signal.SIGINT):
            request = {**self.request(["tower-http-servedir"], case={"files": "1 MB", "readers": 1}), "settings": settings}
            process = subprocess.Popen(DRIVER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=asked.ROOT)
            self.addCleanup(process.kill)
            process.stdin.write(json.dumps(request))  # tidy: word, the library's
            process.stdin.close()
            # The server, and the client that asks it.
            stage.wait_until(self, lambda: len(processes_of(self.scratch)) == 2)
            process.send_signal(number)
            self.assertEqual(128 + number, process.wait(stage.PATIENCE_SECONDS))
            self.expect_nothing_left()
            self.assertEqual([], processes_of(self.scratch))
