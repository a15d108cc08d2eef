"""The stream of objects that don't all fit: what the stores of Perl's find in it, and that it is the stream that is described."""
import bisect
import collections
import itertools
import sys

import asked
import stage

sys.path.append(str(asked.ROOT / "bench/drivers/python"))
import values  # noqa: E402

DEFINITION = asked.definition("stream")
DRIVER = DEFINITION["drivers"][0]
TINY = {**DEFINITION["settings"], "keys": 2000, "operations": 4000}
TINY["configurations"] = {cap: {**TINY["configurations"]["5.8 MB"], "pages": 11, "buckets": 89, "bytes": 720896}
                          for cap in TINY["configurations"]}


class Stream(stage.OnScratch):
    def request(self, stores, **more):
        return asked.request({**DEFINITION, "settings": TINY}, "stream", self.scratch, case={"cap": "5.8 MB"}, stores=stores, **more)

    def test_every_store_gives_a_sound_record(self):
        listed = stage.listed(DRIVER)
        answer = self.ask(DRIVER, self.request(DEFINITION["stores"], repetitions=[1, 2]))
        self.assertEqual([], answer.of("note"))
        stores = {name: stage.facts_of(listed[name]) for name in DEFINITION["stores"]}
        lines = [({"cap": "5.8 MB"}, line) for line in answer.lines]
        stage.write_record(self.scratch["disk"] / "record", DEFINITION, "stream", stores, lines)
        counts = collections.Counter((sample["store"], sample["measure"]) for sample in answer.of("sample"))
        expected = {(name, measure): 2 for name in DEFINITION["stores"] if "absent" not in listed[name] for measure in DEFINITION["measures"]}
        del expected["LRU (Perl)", "operations"]
        # Simulated, it comes to the same each time.
        expected["LRU (Perl)", "hits"] = 1
        self.assertEqual(expected, dict(counts))
        for sample in answer.of("sample"):
            if sample["measure"] == "hits":
                self.assertTrue(0 < sample["value"] < 100, sample)

    def test_the_stream_and_the_ideal_are_those_that_are_described(self):
        answer = self.ask(DRIVER, self.request(["LRU (Perl)"]))
        self.assertEqual([100 * hits_of_an_lru() / TINY["operations"]], [sample["value"] for sample in answer.of("sample")])

    def test_a_store_without_a_cap_takes_no_part(self):
        self.assertEqual([], self.ask(DRIVER, self.request(["hash (Perl)"])).lines)


def hits_of_an_lru():
    """By the words of bench/drivers/README.md."""
    seed, pool, count = DEFINITION["seed"], values.POOL_BYTES, TINY["keys"]
    numbers = values.Stream(seed, 5)
    sizes = []
    for _ in range(count):
        sizes.append(TINY["smallest"] + numbers.below(TINY["largest"] - TINY["smallest"] + 1))
        numbers.below(pool - sizes[-1])
    sums = list(itertools.accumulate(rank ** -TINY["skew"] for rank in range(1, count + 1)))
    limits = [int(reached / sums[-1] * 2 ** 32) for reached in sums]
    numbers = values.Stream(seed, 6)
    entries, held, hits = {}, 0, 0
    for operation in range(2 * TINY["operations"]):
        chosen = bisect.bisect_right(limits, numbers.next())
        # The key has 12 bytes.
        if chosen in entries:
            hits += operation >= TINY["operations"]
            held -= entries.pop(chosen)
        entries[chosen] = 12 + sizes[chosen]
        held += entries[chosen]
        while held > TINY["configurations"]["5.8 MB"]["bytes"]:
            held -= entries.pop(next(iter(entries)))
    return hits
