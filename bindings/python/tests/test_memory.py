"""Memory is released: by an explicit end, by the garbage collector, and at the end of the interpreter."""

from __future__ import annotations

import gc
import subprocess
import sys
import unittest
import weakref
from collections.abc import Callable
from typing import Any

import eyewall

from .stage import CacheCase


class Holder(eyewall.Cache):
    """A cache in a reference cycle."""

    held: Any


class Cycles(CacheCase):
    def test_objects_that_a_cache_holds_of_itself_are_collected(self) -> None:
        ways: dict[str, Callable[[Holder], Any]] = {
            "claim": lambda cache: cache.claim("a"),
            "flight": lambda cache: cache._begin_fill("a", 0, False)[1],
            "walk": lambda cache: cache.items(),
            "view": lambda cache: cache.get_view("b"),
            "writer": lambda cache: cache.writer("a"),
        }
        self.cache["b"] = b"1"
        for name, hold in ways.items():
            with self.subTest(name):
                cache = Holder(self.path)
                cache.held = hold(cache)
                gone = weakref.ref(cache)
                del cache
                gc.collect()
                self.assertIsNone(gone())
                # Everything that it held of the key has ended.
                self.assertEqual(self.cache._begin_fill("a", 0, False)[0], "ours")
        self.assertEqual(self.cache.stats()["pins"], 0)

    def test_a_serializer_that_knows_its_cache_is_collected(self) -> None:
        known: list[Any] = []
        cache = eyewall.Cache(self.path, serializer=eyewall.Serializer(lambda value: bytes(len(known)), lambda data: known))
        known.append(cache)
        gone = weakref.ref(cache)
        del cache, known
        gc.collect()
        self.assertIsNone(gone())

    def test_calls_leave_no_references(self) -> None:
        """For keys, values and defaults, found, missing and refused."""
        key, value, default = "key %d" % id(self), b"value %d" % id(self), ["default"]
        counted = [key, value, default]
        before = [sys.getrefcount(each) for each in counted]
        for _ in range(1000):
            self.cache[key] = value
            self.cache.get(key, default)
            self.cache[key]
            key in self.cache
            self.cache.get_many([key, "absent"])
            self.cache.lookup(key)
            self.cache.get_view(key)
            self.cache.remove(key)
            self.cache.get(key, default)
            self.cache._look(key, default)
            for wrong in (default, None):
                with self.assertRaises(TypeError):
                    self.cache.get(wrong)  # type: ignore[arg-type]
            with self.assertRaises(eyewall.SerializerError):
                self.cache.put(key, default)
            with self.assertRaises(KeyError):
                self.cache[key]
        gc.collect()
        self.assertEqual([sys.getrefcount(each) for each in counted], before)

    def test_an_interpreter_ends_with_everything_held(self) -> None:
        code = """if True:
            import asyncio, sys, threading, eyewall
            cache = eyewall.Cache(sys.argv[1])
            cache["a"] = b"1"
            view, walk, claim = cache.get_view("a"), cache.items(), cache.claim("b")
            flight, writer = cache._begin_fill("c", 0, False)[1], cache.writer("d")
            writer.write(b"1")
            follower = cache.follow("d")
            next(walk)
            threading.Thread(target=cache.get_or_fill, args=("c", bytes), kwargs={"wait": 3600}, daemon=True).start()

            def generator():
                with cache.claim("e") as held:
                    yield held

            stepped = generator()
            next(stepped)
        """
        done = subprocess.run([sys.executable, "-X", "dev", "-c", code, self.path], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for key in "bcde":
            self.assertEqual(self.cache._begin_fill(key, 0, False)[0], "ours")

    def test_a_generator_that_is_closed_ends_its_claim(self) -> None:
        def generator() -> Any:
            with self.cache.claim("a") as claim:
                yield claim

        stepped = generator()
        next(stepped)
        with self.assertRaises(eyewall.BusyError):
            self.cache._begin_fill("a", 0, False)
        stepped.close()
        self.assertEqual(self.cache._begin_fill("a", 0, False)[0], "ours")


if __name__ == "__main__":
    unittest.main()
