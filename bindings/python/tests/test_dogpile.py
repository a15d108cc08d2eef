"""Regions of dogpile.cache store their values in a volume, and make each once over all processes."""

from __future__ import annotations

import importlib.util
import os
import threading
import unittest
from typing import Any

import eyewall

from .stage import CacheCase


@unittest.skipUnless(importlib.util.find_spec("dogpile"), "dogpile.cache isn't installed")
class Regions(CacheCase):
    def region(self, **arguments: Any) -> Any:
        from dogpile.cache import make_region

        region = make_region().configure("eyewall", expiration_time=3600, arguments={"path": self.path, **arguments})
        self.addCleanup(region.backend.volume.close)
        return region

    def test_its_interface(self) -> None:
        from dogpile.cache.api import NO_VALUE

        region = self.region()
        region.set("a", {"value": (1, 2)})
        self.assertEqual(region.get("a"), {"value": (1, 2)})
        self.assertIs(region.get("absent"), NO_VALUE)
        region.set_multi({"b": 1, "c": 2})
        self.assertEqual(region.get_multi(["b", "absent", "c"]), [1, NO_VALUE, 2])
        region.delete("a")
        region.delete_multi(["b", "absent"])
        self.assertEqual(region.get_multi(["a", "b"]), [NO_VALUE] * 2)
        # The region makes the bytes, so this package's types of values don't matter.
        self.assertIsInstance(self.cache["c"], bytes)

    def test_times(self) -> None:
        region = self.region(ttl=60)
        region.set("a", 1)
        entry = self.cache.lookup("a")
        assert entry and entry.ttl_left
        self.assertEqual(round(entry.ttl_left), 60)

    def test_a_value_that_is_too_large_is_returned_and_not_stored(self) -> None:
        region = self.region()
        region.set("a", 1)
        with self.assertWarnsRegex(eyewall.NotStoredWarning, "entry_bytes_max"):
            region.set("a", bytes(3 << 20))
        self.assertNotIn("a", self.cache)
        with self.assertWarns(eyewall.NotStoredWarning):
            self.assertEqual(len(region.get_or_create("b", lambda: bytes(3 << 20))), 3 << 20)
        with self.assertWarns(eyewall.NotStoredWarning):
            region.set_multi({"c": bytes(3 << 20), "d": 2})
        self.assertEqual(region.get("d"), 2)

    def test_a_value_is_made_once_over_processes(self) -> None:
        calls, call = os.pipe()
        region = self.region()

        @region.cache_on_arguments()  # type: ignore[untyped-decorator]
        def made(number: int) -> str:
            os.write(call, b"x")
            return f"made {number}"

        for number in range(10):
            children = [self.forked(lambda: self.assertEqual(made(number), f"made {number}")) for _ in range(3)]
            self.assertEqual(made(number), f"made {number}")
            for child in children:
                self.assert_ends_well(child)
        self.assertEqual(len(os.read(calls, 1000)), 10)

    def test_the_mutex(self) -> None:
        backend = self.region().backend
        mutex, other = backend.get_mutex("a"), backend.get_mutex("a")
        self.assertFalse(mutex.locked())
        self.assertTrue(mutex.acquire())
        self.assertTrue(mutex.locked() and other.locked())
        self.assertFalse(other.acquire(wait=False))
        self.assertFalse(backend.get_mutex("b").locked())
        waiter = threading.Thread(target=other.acquire)
        waiter.start()
        mutex.release()
        waiter.join()
        self.assertTrue(mutex.locked())
        other.release()
        other.release()
        self.assertFalse(mutex.locked())
        self.assertEqual(list(self.cache), [], "a mutex is no entry")

    def test_threads_do_not_release_one_anothers_mutex(self) -> None:
        """A region gives all threads the same mutex for a key."""
        mutex = self.region().backend.get_mutex("a")

        class Slow:
            """A flight during whose end another thread acquires the mutex."""

            def __init__(self, flight: Any) -> None:
                self.flight = flight

            def end(self) -> None:
                self.flight.end()
                next_one = threading.Thread(target=mutex.acquire)
                next_one.start()
                next_one.join()

        mutex.acquire()
        mutex._flight = Slow(mutex._flight)
        mutex.release()
        self.assertFalse(self.region().backend.get_mutex("a").acquire(wait=False), "the other thread has it")
        mutex.release()
        self.assertFalse(mutex.locked())

    def test_a_process_that_dies_releases_the_mutex(self) -> None:
        backend = self.region().backend
        child = self.forked(lambda: self.assertTrue(backend.get_mutex("a").acquire()))
        self.assert_ends_well(child)
        self.assertTrue(backend.get_mutex("a").acquire())


if __name__ == "__main__":
    unittest.main()
