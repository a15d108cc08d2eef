"""Disk or shared memory: the driver goes through storages, ways and conditions itself, and leaves nothing behind."""
import collections

import asked
import stage

DEFINITION = asked.definition("storage", is_quick=False)
DRIVER = DEFINITION["drivers"][0]
TINY = {name: 1 for name in DEFINITION["settings"]} | {"requests_quiet": 4, "requests_busy": 4}


class Storage(stage.OnScratch):
    def test_its_stores_are_those_of_the_definition(self):
        listed = stage.listed(DRIVER)
        self.assertEqual(DEFINITION["stores"], list(listed))
        if "absent" in listed["eyewall (PHP)"]:
            self.assertIn("EYEWALL_PHP_EXTENSION", listed["eyewall (PHP)"]["absent"])

    def test_a_run_is_a_sound_record_of_every_case(self):
        listed = stage.listed(DRIVER)
        if "absent" in listed["files"]:
            self.skipTest(listed["files"]["absent"])
        workload = {**DEFINITION, "settings": TINY}
        answer = self.ask(DRIVER, asked.request(workload, "storage", self.scratch, stores=DEFINITION["stores"], repetitions=[1, 2]))
        for note in answer.of("note"):
            self.assertRegex(note, "skipped")
        stores = {name: {"kind": facts.get("kind", "other"), "version": facts.get("version"),
                         **({"absent": facts["absent"]} if "absent" in facts else {})} for name, facts in listed.items()}
        stage.write_record(self.scratch["disk"] / "record", workload, "storage", stores, [({}, line) for line in answer.lines])
        skipped = " ".join(answer.of("note"))
        each = {"load": 8 if "restart" in skipped else 16, "requests": 0 if "Apache" in skipped else 8,
                "restart": 0 if "restart" in skipped else 4}
        # A volume has one of the three ways.
        expected = {(name, measure): count for name, facts in listed.items() if "absent" not in facts
                    for measure, count in {**each, "rebuild": 12 if name == "files" else 4}.items()}
        counts = collections.Counter((sample["store"], sample["measure"]) for sample in answer.of("sample"))
        self.assertEqual({each: 2 * cases for each, cases in expected.items() if cases}, dict(counts))
        self.assertTrue(answer.of("progress"))

    def test_storages_take_turns(self):
        if "absent" in stage.listed(DRIVER)["files"]:
            self.skipTest("php is missing")
        chosen = {"storage": ["disk", "shm"], "page_cache": ["warm"], "neighbour": ["quiet"], "opcode_cache": ["off"], "way": ["truncate"]}
        request = asked.request({**DEFINITION, "settings": TINY}, "storage", self.scratch, stores=["files"], repetitions=[1, 2])
        answer = self.ask(DRIVER, {**request, "parameters": chosen})
        turns = [sample["case"]["storage"] for sample in answer.of("sample") if sample["measure"] == "rebuild"]
        self.assertEqual(["shm", "disk", "disk", "shm"], turns)

    def test_what_the_request_has_chosen_is_not_said_again(self):
        if "absent" in stage.listed(DRIVER)["files"]:
            self.skipTest("php is missing")
        case = {"storage": "shm", "page_cache": "warm", "neighbour": "quiet", "opcode_cache": "off", "way": "truncate"}
        request = asked.request({**DEFINITION, "settings": TINY}, "storage", self.scratch, stores=["files"], case=case)
        samples = self.ask(DRIVER, request).of("sample")
        self.assertTrue(samples)
        self.assertTrue(all(sample["case"] == {} for sample in samples))
