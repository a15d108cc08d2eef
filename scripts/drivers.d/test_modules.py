"""The module comparison: every store of every language is measured, with the same keys and values."""
import itertools
import json

import asked
import stage

TINY = {"keys": 60, "operations": 200, "rounds": 2, "seconds": 0.05}
DEFINITION = asked.definition("modules")
DEFINITION["settings"] |= TINY
PERL, PHP, PYTHON, LUA = DRIVERS = DEFINITION["drivers"]


class Modules(stage.OnScratch):
    def test_every_store_of_the_definition_is_listed_by_one_driver(self):
        # One driver's stores are those of other workloads, too, and there may be one that only they have.
        wanted = {name for workload in ("modules", "workers", "stream") for name in asked.definition(workload)["stores"]}
        found = [name for driver in DRIVERS for name in stage.listed(driver)]
        self.assertEqual(sorted([*found, stage.OURS_ELSEWHERE]), sorted(wanted))
        self.assertLessEqual(set(DEFINITION["stores"]), wanted)

    def test_a_store_has_a_version_or_a_reason_and_what_to_do(self):
        for driver in DRIVERS:
            for name, line in stage.listed(driver).items():
                with self.subTest(name):
                    if "absent" in line:
                        self.assertRegex(line["absent"], r"apt install|nothing to install|bindings/(?:lua|perl|php|python)")
                    else:
                        self.assertIn(line["kind"], ("other", "reference"))
                        self.assertRegex(line["version"], r"\d")

    def test_every_store_gives_a_sound_record(self):
        stores, lines = {"eyewall": {"kind": "ours", "version": None}}, []
        values = {"values": ["binary", "structured"], "size": ["small"],
                  "configuration": ["all fits", "1,000,000 bytes, expiry of 10 minutes"]}
        workload = asked.definition("modules", is_quick=False) | {"settings": DEFINITION["settings"]}
        for driver in DRIVERS:
            for name, facts in self.listed(driver).items():
                stores[name] = stage.facts_of(facts)
                for choice in itertools.product(*values.values()):
                    case = dict(zip(values, choice))
                    lines += [(case, line) for line in self.measured(driver, name, case, "absent" in facts)]
        record = stage.write_record(self.scratch["disk"] / "record", workload, "modules", stores, lines)
        shares = [value for (_, measure, *_), series in record.samples.items() if measure.endswith("hits")
                  for values in series.values() for value, _ in values]
        self.assertTrue(all(0 <= share <= 100 for share in shares))

    def listed(self, driver):
        return {name: line for name, line in stage.listed(driver).items() if name in DEFINITION["stores"]}

    def measured(self, driver, name, case, is_absent):
        answer = self.ask(driver, self.request(name, case))
        self.assertEqual([], answer.of("note"), name)
        kinds = [sample["measure"] for sample in answer.of("sample")]
        if is_absent:
            self.assertEqual([{"store": name, "absent": answer.lines[0]["absent"]}], answer.lines)
        elif kinds or (case["configuration"] == "all fits" and case["values"] == "structured"):
            # What the module has no such configuration for is left out, but every one has that where all fits.
            self.assertEqual(sorted(DEFINITION["measures"]), sorted(kinds), f"{name}, {case}")
            self.assertTrue(all(sample["store"] == name and sample["repetition"] == 1 for sample in answer.of("sample")))
        return answer.lines

    def request(self, name, case, **more):
        return asked.request(DEFINITION, "modules", self.scratch, case=case, stores=[name], **more)

    def test_where_all_fits_all_that_was_stored_is_found(self):
        case = {"values": "binary", "size": "medium", "configuration": "all fits"}
        for driver in DRIVERS:
            for name, facts in self.listed(driver).items():
                if "absent" in facts:
                    continue
                figures = {sample["measure"]: sample["value"] for sample in self.ask(driver, self.request(name, case)).of("sample")}
                with self.subTest(name):
                    self.assertEqual(100, figures.get("mix_hits", 100))

    def test_the_languages_have_the_same_keys_values_and_orders(self):
        expected = json.loads((asked.ROOT / "bench/drivers/vectors.json").read_text())
        for driver in DRIVERS:
            with self.subTest(driver[0]):
                self.assertEqual([expected["vectors"]], self.ask(driver, expected["request"]).of("vectors"))

    def test_the_vectors_are_those_of_the_definition(self):
        told = json.loads((asked.ROOT / "bench/drivers/vectors.json").read_text())["request"]
        whole = asked.definition("modules", is_quick=False)
        names = ("keys", "operations", "stored_percent", "set_percent", "binary_bytes", "structured_fields")
        self.assertEqual(whole["seed"], told["seed"])
        self.assertEqual({name: whole["settings"][name] for name in names}, {name: told["settings"][name] for name in names})

    def test_a_module_that_is_missing_is_absent_with_what_to_install(self):
        hidden = self.scratch["disk"] / "Cache"
        hidden.mkdir()
        (hidden / "FastMmap.pm").write_text("die 'not here'")
        missing = (
            (["/usr/bin/env", f"PERL5LIB={hidden.parent}", *PERL], "Cache::FastMmap", "libcache-fastmmap-perl"),
            ([PHP[0], "-n", *PHP[1:]], "APCu", "php-apcu"),
            # Without the distribution's packages.
            ([PYTHON[0], "-S", *PYTHON[1:]], "lmdb (Python)", "python3-lmdb"),
        )
        case = {"values": "binary", "size": "medium", "configuration": "all fits"}
        for driver, name, package in missing:
            with self.subTest(name):
                self.assertIn(f"apt install {package}", stage.listed(driver)[name]["absent"])
                lines = asked.ask(driver, self.request(name, case)).lines
                self.assertEqual([name], [line["store"] for line in lines])
                self.assertIn(package, lines[0]["absent"])

    def test_a_store_that_fails_is_a_note_and_no_sample(self):
        case = {"values": "binary", "size": "large", "configuration": "all fits"}
        # A map of 4 KiB, which is too small for anything.
        request = self.request("LMDB_File", case)
        request["settings"] = json.loads(json.dumps(request["settings"]))  # tidy: word, the library's
        request["settings"]["configurations"]["all fits"]["bytes"] = 2048
        for driver, name in ((PERL, "LMDB_File"), (PYTHON, "lmdb (Python)")):
            if "absent" in stage.listed(driver)[name]:
                continue
            answer = self.ask(driver, {**request, "stores": [name]})
            with self.subTest(name):
                self.assertEqual([], answer.of("sample"))
                self.assertTrue(answer.of("note")[0].startswith(f"{name}: "), answer.lines)
