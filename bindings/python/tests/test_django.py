"""The Django backend's own features. scripts/test-python also runs Django's tests of backends."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import unittest
from typing import TYPE_CHECKING, Any

import eyewall

from .stage import CacheCase

if TYPE_CHECKING:
    from eyewall.django import EyewallCache


@unittest.skipUnless(importlib.util.find_spec("django"), "Django isn't installed")
class Django(CacheCase):
    def backend(self, **options: Any) -> EyewallCache:
        from django.conf import settings
        from eyewall.django import EyewallCache

        if not settings.configured:
            settings.configure()
        backend = EyewallCache(self.path, {"TIMEOUT": 60, "OPTIONS": {"MAX_ENTRIES": 7, **options}})
        self.addCleanup(backend.volume.close)
        return backend

    def test_a_callable_is_called_once_over_processes(self) -> None:
        calls, call = os.pipe()
        backend = self.backend()

        def make() -> list[int]:
            os.write(call, b"x")
            return [1]

        for number in range(10):
            key = f"key-{number}"
            children = [self.forked(lambda: self.assertEqual(backend.get_or_set(key, make), [1])) for _ in range(3)]
            for child in children:
                self.assert_ends_well(child)
        self.assertEqual(len(os.read(calls, 1000)), 10)
        self.assertEqual(backend.get_or_set("over", make, timeout=0), [1])
        self.assertIsNone(backend.get("over"))

    def test_no_count_is_lost(self) -> None:
        backend = self.backend()
        backend.set("n", 0)

        def count() -> None:
            for _ in range(100):
                backend.incr("n")

        children = [self.forked(count) for _ in range(3)]
        for child in children:
            self.assert_ends_well(child)
        self.assertEqual(backend.get("n"), 300)

    def test_a_value_that_can_not_be_stored_is_removed_with_a_warning(self) -> None:
        backend = self.backend()
        backend.set("a", "old")
        with self.assertWarnsRegex(eyewall.NotStoredWarning, "entry_bytes_max"):
            backend.set("a", bytes(3 << 20))
        self.assertIsNone(backend.get("a"))
        with self.assertWarns(eyewall.NotStoredWarning):
            self.assertFalse(backend.add("a", bytes(3 << 20)))

    def test_coroutines_and_the_volume(self) -> None:
        backend = self.backend()

        async def main() -> None:
            await backend.aset("a", {"value": 1})
            self.assertEqual(await backend.aget("a"), {"value": 1})
            self.assertEqual(await backend.aget("absent", 2), 2)

        asyncio.run(main())
        self.assertIn(backend.make_key("a"), backend.volume)

    def test_coroutines_lose_no_count_and_make_a_value_once(self) -> None:
        backend = self.backend()
        calls: list[None] = []

        def make() -> int:
            calls.append(None)
            return 7

        async def main() -> None:
            await backend.aset("n", 0, timeout=1000)
            await asyncio.gather(*(backend.aincr("n") for _ in range(50)), *(backend.adecr("n", 2) for _ in range(20)))
            self.assertEqual(await backend.aget("n"), 10)
            with self.assertRaises(ValueError):
                await backend.aincr("absent")
            self.assertEqual(await asyncio.gather(*(backend.aget_or_set("made", make) for _ in range(20))), [7] * 20)
            self.assertEqual(await backend.aget_or_set("over", make, timeout=0), 7)
            self.assertEqual(await backend.aget_or_set("given", 8), 8)

        asyncio.run(main())
        self.assertEqual(len(calls), 2)
        entry = backend.volume.lookup(backend.make_key("n"))
        assert entry and entry.ttl_left
        self.assertGreater(entry.ttl_left, 900, "its time goes on")

    def test_others_that_may_write_and_other_options_are_refused(self) -> None:
        backend = self.backend()
        with self.assertRaisesRegex(ValueError, "is open in this process with"):
            self.backend(serializer="json")
        backend.volume.close()
        os.chmod(self.path, 0o660)
        with self.assertRaises(eyewall.UntrustedError):
            self.backend()
        self.backend(serializer="json").set("a", [1])


if __name__ == "__main__":
    unittest.main()
