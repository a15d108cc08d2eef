"""Processes that share a store: each store of Perl's that can be shared is measured with one process and with two."""
import collections
import json
import os
import pathlib
import signal
import subprocess

import asked
import stage

DEFINITION = asked.definition("workers")
DRIVER = DEFINITION["drivers"][0]
TINY = {**DEFINITION["settings"], "keys": 250, "seconds": 0.002, "rounds": 2}


class Workers(stage.OnScratch):
    def request(self, stores, keys="all", **more):
        return asked.request({**DEFINITION, "settings": TINY}, "workers", self.scratch, case={"keys": keys}, stores=stores, **more)

    def test_every_store_gives_a_sound_record(self):
        listed = stage.listed(DRIVER)
        lines = []
        for keys in DEFINITION["parameters"]["keys"]["values"]:
            answer = self.ask(DRIVER, self.request(DEFINITION["stores"], keys, repetitions=[1, 2]))
            self.assertEqual([], answer.of("note"))
            lines += [({"keys": keys}, line) for line in answer.lines]
        stores = {name: stage.facts_of(listed[name]) for name in DEFINITION["stores"]}
        stage.write_record(self.scratch["disk"] / "record", DEFINITION, "workers", stores, lines)
        # For each repetition, and each kind of keys, a figure of each round.
        counts = collections.Counter((line["sample"]["store"], line["sample"]["case"]["processes"]) for _, line in lines if "sample" in line)
        there = [name for name in DEFINITION["stores"] if "absent" not in listed[name]]
        self.assertEqual({(name, processes): 8 for name in there for processes in (1, 2)}, dict(counts))

    def test_stores_and_numbers_of_processes_take_turns_to_and_fro(self):
        names = [name for name in DEFINITION["stores"] if "absent" not in stage.listed(DRIVER)[name]][:2]
        if len(names) < 2:
            self.skipTest("fewer than two of its stores are there")
        samples = self.ask(DRIVER, self.request(names, repetitions=[1, 2])).of("sample")
        self.assertEqual([names[0]] * 4 + [names[1]] * 8 + [names[0]] * 4, [sample["store"] for sample in samples])
        self.assertEqual([1, 2, 2, 1] * 4, [sample["case"]["processes"] for sample in samples])

    def test_what_processes_can_not_share_is_a_note_said_once(self):
        answer = self.ask(DRIVER, self.request(["hash (Perl)"], repetitions=[1, 2]))
        self.assertEqual(["hash (Perl): a process did not find what another has stored"], answer.of("note"))
        self.assertEqual([], answer.of("sample"))

    def test_a_process_that_dies_is_a_note(self):
        if "absent" in stage.listed(DRIVER)["Hash::SharedMem"]:
            self.skipTest("Hash::SharedMem is missing")
        request = self.request(["Hash::SharedMem"])
        request["settings"] = {**TINY, "seconds": 600}
        driver = subprocess.Popen(DRIVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=asked.ROOT)
        self.addCleanup(driver.kill)
        self.addCleanup(driver.stdout.close)
        driver.stdin.write(json.dumps(request))  # tidy: word, the library's
        driver.stdin.close()
        # What it says first is said before it starts them.
        self.assertIn("progress", driver.stdout.readline())
        children = pathlib.Path(f"/proc/{driver.pid}/task/{driver.pid}/children")
        stage.wait_until(self, lambda: len(children.read_text().split()) == 2)
        for process in children.read_text().split():
            os.kill(int(process), signal.SIGKILL)
        lines = [json.loads(line) for line in driver.stdout]
        self.assertEqual([{"note": "Hash::SharedMem: a process of it ended"}], lines)
        self.assertEqual(0, driver.wait())
        self.expect_nothing_left()
