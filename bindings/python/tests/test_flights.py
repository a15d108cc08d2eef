"""One of many callers makes a missing value."""

from __future__ import annotations

import os
import threading
import unittest
import warnings

import eyewall

from .stage import CacheCase


class Flights(CacheCase):
    def test_it_is_made_once_over_threads_and_processes(self) -> None:
        calls, call = os.pipe()

        def make() -> str:
            os.write(call, b"x")
            return "made"

        for number in range(20):
            key = f"page {number}"
            children = [self.forked(lambda: self.assertEqual(self.cache.get_or_fill(key, make), "made")) for _ in range(2)]
            threads = [threading.Thread(target=self.cache.get_or_fill, args=(key, make)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for child in children:
                self.assert_ends_well(child)
        self.assertEqual(len(os.read(calls, 1000)), 20)

    def test_an_exception_is_raised_and_the_next_caller_makes_the_value(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            self.cache.get_or_fill("a", lambda: 1 // 0)
        self.assertEqual(self.cache.get_or_fill("a", lambda: 1), 1)
        self.assertEqual(self.cache.fill("a", lambda: 2), 1)

    def test_none_is_a_value(self) -> None:
        made: list[None] = []
        for _ in range(2):
            self.assertIsNone(self.cache.get_or_fill("a", lambda: made.append(None)))
        self.assertEqual(len(made), 1)

    def test_a_negative_entry_is_known(self) -> None:
        for make in (lambda: eyewall.Negative(404, ttl=60), lambda: self.fail("it is known")):
            self.assertEqual(self.cache.get_or_fill("a", make, default="nothing"), "nothing")
        entry = self.cache.lookup("a")
        assert entry
        self.assertEqual(entry.reason, 404)

    def test_a_negative_entry_is_kept_and_purged_like_a_value(self) -> None:
        for ttl, own, left in ((60, None, 60), (60, 5, 5), (None, None, None)):
            self.cache.get_or_fill("a", lambda: eyewall.Negative(404, ttl=own), ttl=ttl, tags=["product:7"])
            entry = self.cache.lookup("a")
            assert entry
            self.assertEqual((entry.ttl_left and round(entry.ttl_left), entry.tags), (left, ["product:7"]))
            self.cache.purge_tag("product:7")
            self.assertIsNone(self.cache.lookup("a"))
        with self.assertWarnsRegex(eyewall.NotStoredWarning, "tags"):
            self.cache.get_or_fill("a", lambda: eyewall.Negative(404), tags=map(str, range(40)))

    def test_a_caller_that_accepts_stale_values_does_not_wait(self) -> None:
        self.cache.put("a", "old", ttl=60, stale=60)
        self.cache.purge_all(soft=True)
        state, flight = self.cache._begin_fill("a", 0, False)
        self.assertEqual(state, "ours")
        self.assertEqual(self.cache.get_or_fill("a", lambda: "own", ttl=60, stale=60), "old")
        flight.store("new", ttl=60, stale=60, tags="x")
        self.assertEqual(self.cache.get_or_fill("a", lambda: "own", ttl=60, stale=60), "new")
        with self.assertRaises(eyewall.EndedError):
            flight.store("again")

    def test_a_caller_that_waits_too_long_makes_the_value_itself(self) -> None:
        with self.cache._begin_fill("a", 0, False)[1]:
            self.assertEqual(self.cache.get_or_fill("a", lambda: "own", wait=0), "own")
            self.assertEqual(self.cache.get_or_fill("a", lambda: eyewall.Negative(), wait=0, default="none"), "none")
        self.assertNotIn("a", self.cache)

    def test_a_value_that_can_not_be_stored_is_returned_with_a_warning(self) -> None:
        with self.assertWarnsRegex(eyewall.NotStoredWarning, "entry_bytes_max"):
            self.assertEqual(len(self.cache.get_or_fill("a", lambda: bytes(3 << 20))), 3 << 20)
        with self.assertRaises(eyewall.SerializerError):
            self.cache.get_or_fill("a", lambda: [1])
        with warnings.catch_warnings(action="error"):
            self.assertEqual(self.cache.get_or_fill("a", lambda: 1), 1)

    def test_a_purge_beats_a_value_that_was_begun_before(self) -> None:
        def make() -> str:
            self.cache.purge_tag("news")
            return "old news"

        self.assertEqual(self.cache.get_or_fill("a", make, tags="news"), "old news")
        self.assertNotIn("a", self.cache)

    def test_a_waiting_caller_counts_once(self) -> None:
        """However long it waits, and however often it looks whether to go on."""
        asked = 0

        def is_wanted() -> bool:
            nonlocal asked
            asked += 1
            return asked < 3

        with self.cache._begin_fill("a", 0, False)[1]:
            with self.assertRaises(eyewall.BusyError):
                self.cache._begin_fill("a", 3600, False, is_wanted)
            stats = self.cache.stats()
            self.assertEqual((asked, stats["busy"], stats["misses"]), (3, 0, 2))
            with self.assertRaises(eyewall.BusyError):
                self.cache._begin_fill("a", 0, False)
            self.assertEqual(self.cache.stats()["busy"], 1)

    def test_an_exception_during_the_wait_ends_it(self) -> None:
        with self.cache._begin_fill("a", 0, False)[1], self.assertRaises(ZeroDivisionError):
            self.cache._begin_fill("a", 3600, False, lambda: 1 // 0)  # type: ignore[arg-type, return-value]


if __name__ == "__main__":
    unittest.main()
