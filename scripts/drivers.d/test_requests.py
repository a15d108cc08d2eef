"""Requests that can't be followed: words that say why, an exit status, and not a line of an answer."""
import copy

import asked
import stage

MODULES, WORKERS, STREAM, STORAGE = map(asked.definition, ("modules", "workers", "stream", "storage"))
ANY_STORE = dict(zip(map(tuple, MODULES["drivers"]), ("hash (Perl)", "array (PHP)", "dict (Python)", "table (Lua)")))


class Requests(stage.OnScratch):
    def expect_refused(self, driver, request, words):
        answer = asked.ask(driver, request)
        with self.subTest(driver=driver[-1], words=words):
            self.assertEqual((2, []), (answer.code, answer.lines))
            self.assertIn(words, answer.words)
            self.assertEqual(1, len(answer.words.splitlines()), answer.words)

    def test_what_is_no_request_is_refused(self):
        for driver in (*MODULES["drivers"], *WORKERS["drivers"], *STREAM["drivers"], *STORAGE["drivers"]):
            self.expect_refused(driver, "", "no JSON")
            self.expect_refused(driver, "{", "no JSON")
            self.expect_refused(driver, "[1]", "no object")
            self.expect_refused(driver, "{}", "may be list, measure")
            self.expect_refused(driver, {"do": "dance"}, "dance")

    def test_a_request_of_modules_that_lacks_something_is_refused(self):
        for driver in MODULES["drivers"]:
            case = {"values": "binary", "size": "medium", "configuration": "all fits"}
            good = asked.request(MODULES, "modules", self.scratch, case=case, stores=[ANY_STORE[tuple(driver)]])
            for path, value, words in (
                (("procedure",), "gets", "procedure"), (("seed",), "many", "seed"), (("settings",), None, "settings"),
                (("settings", "keys"), 0, "keys"), (("settings", "rounds"), 0, "rounds"), (("settings", "seconds"), "long", "seconds"),
                (("settings", "configurations"), None, "configurations"),
                (("case",), None, "case"), (("case", "values"), "ternary", "ternary"), (("case", "size"), "huge", "small"),
                (("case", "configuration"), "none", "all fits"), (("stores",), [], "stores"), (("stores",), ["none"], "none"),
                (("repetitions",), [], "repetitions"), (("repetitions",), [0], "repetitions"),
                (("scratch",), {}, "scratch"), (("scratch", "shm"), "/nowhere", "scratch"),
            ):
                self.expect_refused(driver, changed(good, path, value), words)

    def test_a_request_of_workers_that_lacks_something_is_refused(self):
        good = asked.request(WORKERS, "workers", self.scratch, case={"keys": "all"}, stores=["BerkeleyDB"])
        for path, value, words in (
            (("procedure",), "modules", "procedure"), (("seed",), -1, "seed"), (("settings",), None, "workers.toml"),
            (("settings", "keys"), 0, "keys"), (("settings", "value_bytes"), "large", "value_bytes"),
            (("settings", "seconds"), None, "seconds"), (("settings", "rounds"), 0, "rounds"),
            (("settings", "configuration"), [], "configuration"), (("case",), [], "case"), (("case", "keys"), "some", "some"),
            (("parameters",), None, "processes"), (("parameters", "processes"), [], "processes"),
            (("parameters", "processes"), [0], "processes"), (("stores",), ["none"], "none"), (("repetitions",), [], "repetitions"),
            (("scratch", "shm"), "/nowhere", "scratch"),
        ):
            self.expect_refused(WORKERS["drivers"][0], changed(good, path, value), words)

    def test_a_request_of_stream_that_lacks_something_is_refused(self):
        good = asked.request(STREAM, "stream", self.scratch, case={"cap": "5.8 MB"}, stores=["LRU (Perl)"])
        for path, value, words in (
            (("procedure",), "workers", "procedure"), (("seed",), "any", "seed"), (("settings",), [], "stream.toml"),
            (("settings", "keys"), 0, "keys"), (("settings", "smallest"), 0, "smallest"), (("settings", "largest"), 199, "largest"),
            (("settings", "largest"), 16385, "largest"), (("settings", "skew"), "steep", "skew"),
            (("settings", "operations"), None, "operations"), (("settings", "configurations"), None, "configurations"),
            (("case",), None, "case"), (("case", "cap"), "1 TB", "5.8 MB"), (("stores",), [], "stores"),
            (("repetitions",), [0], "repetitions"), (("scratch",), None, "scratch"),
        ):
            self.expect_refused(STREAM["drivers"][0], changed(good, path, value), words)

    def test_a_request_of_storage_that_lacks_something_is_refused(self):
        good = asked.request(STORAGE, "storage", self.scratch, stores=["files"])
        for path, value, words in (
            (("procedure",), "modules", "procedure"), (("seed",), None, "seed"), (("settings", "blocks"), 0, "blocks"),
            (("stores",), ["none"], "none"), (("repetitions",), [0], "repetitions"), (("scratch", "disk"), "/nowhere", "disk"),
            (("parameters", "way"), ["by hand"], "way"), (("parameters", "storage"), [], "storage"),
        ):
            self.expect_refused(STORAGE["drivers"][0], changed(good, path, value), words)


def changed(request, path, value):
    """The request with one thing in it that is another."""
    made = copy.deepcopy(request)
    inner = made
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return made
