"""Processes share a volume, however they were started, and survive the death of others."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import threading
import unittest

import eyewall

from .stage import CacheCase


def add_one(cache: eyewall.Cache, name: str) -> None:
    """The work of a worker."""
    cache[name] = os.getpid()
    for _ in range(100):
        cache.increment("count")


class Processes(CacheCase):
    def test_a_forked_child_uses_its_parents_volume(self) -> None:
        self.cache["from parent"] = 1

        def child() -> None:
            assert self.cache["from parent"] == 1
            self.cache["from child"] = 2
            with self.cache.claim("claimed") as claim:
                claim.put(3)

        self.assert_ends_well(self.forked(child))
        self.assertEqual((self.cache["from child"], self.cache["claimed"]), (2, 3))

    def test_a_volume_without_a_name_is_shared_with_children(self) -> None:
        with eyewall.Cache(size="1M") as cache:
            self.assertIsNone(cache.path)
            self.assert_ends_well(self.forked(lambda: add_one(cache, "child")))
            self.assertEqual(cache["count"], 100)
            with self.assertRaisesRegex(TypeError, "without a path"):
                pickle.dumps(cache)

    def test_multiprocessing(self) -> None:
        for context in (multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")):
            method = context.get_start_method()
            workers = [context.Process(target=add_one, args=(self.cache, f"{method} {number}")) for number in range(2)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
                self.assertEqual(worker.exitcode, 0)
            self.assertEqual(self.cache.pop("count"), 200)
            self.assertEqual(self.cache[f"{method} 1"], workers[1].pid)

    def test_a_cache_keeps_its_options_in_another_process(self) -> None:
        with eyewall.Cache(self.path, size="4M", serializer="json") as cache:
            cache["a"] = [1]
            with pickle.loads(pickle.dumps(cache)) as again:
                self.assertEqual(again["a"], [1])
                again["b"] = {}

    def test_a_child_does_not_read_its_parents_views(self) -> None:
        self.cache["a"] = b"held"
        view = self.cache.get_view("a")
        assert view is not None
        held: object = view.obj

        def child() -> None:
            nonlocal view, held
            try:
                memoryview(held)  # type: ignore[arg-type]
                raise AssertionError("the child could read it")
            except BufferError as error:
                assert "inherited the view by a fork" in str(error)
            own = self.cache.get_view("a")
            assert own is not None and bytes(own) == b"held"
            # The child must not release the parent's pin.
            view = held = own = None
            gc.collect()

        self.assert_ends_well(self.forked(child))
        self.assertEqual(self.cache.stats()["pins"], 1)
        self.assertEqual(view, b"held")

    def test_a_child_does_not_own_its_parents_claims(self) -> None:
        claim = self.cache.claim("a")

        def child() -> None:
            assert claim.put("from the child") is None

        self.assert_ends_well(self.forked(child))
        self.assertIsNotNone(claim.put("from the parent"))
        self.assertEqual(self.cache["a"], "from the parent")

    def test_another_process_makes_the_value_if_the_first_dies(self) -> None:
        began, begin = os.pipe()

        def make() -> bytes:
            os.write(begin, b"x")
            signal.pause()
            return b"never"

        child = self.forked(lambda: self.assertTrue(self.cache.get_or_fill("a", make)))
        os.read(began, 1)
        waiter = threading.Thread(target=lambda: self.cache.get_or_fill("a", lambda: b"made"))
        waiter.start()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        waiter.join()
        self.assertEqual(self.cache["a"], b"made")

    def test_a_waiting_call_is_interrupted_by_signals(self) -> None:
        with self.cache._begin_fill("a", 30, False)[1]:
            previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
            self.addCleanup(signal.signal, signal.SIGALRM, previous)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with self.assertRaises(KeyboardInterrupt):
                self.cache.get_or_fill("a", bytes)


if __name__ == "__main__":
    unittest.main()
