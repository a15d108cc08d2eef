"""Coroutines use a cache without stopping their loop."""

from __future__ import annotations

import asyncio
import os
import threading
import unittest

import eyewall

from .stage import CacheCase


class Loop(CacheCase, unittest.IsolatedAsyncioTestCase):
    async def test_get_and_put(self) -> None:
        await self.cache.aput("a", "1", ttl=60)
        self.assertEqual(await self.cache.aget("a"), "1")
        self.assertEqual(await self.cache.aget("absent", 2), 2)

    async def test_a_cold_page_is_read_in_a_thread(self) -> None:
        readers: list[int] = []

        class Cold(eyewall.Cache):
            def is_resident(self, key: str | bytes) -> bool | None:
                return False

            def prefault(self, key: str | bytes) -> bool:
                readers.append(threading.get_ident())
                return super().prefault(key)

        with Cold(self.path) as cache:
            cache["a"] = 1
            self.assertEqual(await cache.aget("a"), 1)
        self.assertEqual(len(readers), 1)
        self.assertNotIn(threading.get_ident(), readers)

    async def test_tasks_wait_for_one(self) -> None:
        calls = 0

        async def make() -> str:
            nonlocal calls
            calls += 1
            await asyncio.sleep(0)
            return "made"

        # More than there are threads.
        found = await asyncio.gather(*(self.cache.aget_or_fill("a", make, ttl=60) for _ in range(200)))
        self.assertEqual((found, calls), (["made"] * 200, 1))
        keys = [f"key {number}" for number in range(100)]
        await asyncio.gather(*(self.cache.aget_or_fill(key, make) for key in keys))
        self.assertEqual(calls, 101)

    async def test_the_loop_goes_on_while_another_process_makes_it(self) -> None:
        (began, begin), (may_end, end) = os.pipe(), os.pipe()

        def make() -> str:
            os.write(begin, b"x")
            os.read(may_end, 1)
            return "from the child"

        child = self.forked(lambda: self.assertTrue(self.cache.get_or_fill("a", make)))
        os.read(began, 1)

        async def own() -> str:
            return "own"

        waiting = asyncio.create_task(self.cache.aget_or_fill("a", own))
        # What lets the child go on is done by this loop.
        await asyncio.sleep(0)
        await self.cache.aput("b", 1)
        self.assertFalse(waiting.done())
        os.write(end, b"x")
        self.assertEqual(await waiting, "from the child")
        self.assert_ends_well(child)

    async def test_who_is_cancelled_does_not_end_it_for_others(self) -> None:
        let_go = asyncio.Event()

        async def make() -> str:
            await let_go.wait()
            return "made"

        first = asyncio.create_task(self.cache.aget_or_fill("a", make))
        second = asyncio.create_task(self.cache.aget_or_fill("a", make))
        await asyncio.sleep(0)
        first.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await first
        let_go.set()
        self.assertEqual(await second, "made")
        self.assertEqual(self.cache["a"], "made")

    async def test_failures_stale_ones_and_nothing(self) -> None:
        async def fails() -> str:
            raise ZeroDivisionError

        for _ in range(2):
            with self.assertRaises(ZeroDivisionError):
                await self.cache.aget_or_fill("a", fails)

        async def nothing() -> str | eyewall.Negative:
            return eyewall.Negative(404)

        for _ in range(2):
            self.assertEqual(await self.cache.aget_or_fill("b", nothing, default="none"), "none")
        self.cache.put("c", "old", ttl=60, stale=60)
        self.cache.purge_all(soft=True)
        let_go = asyncio.Event()

        async def make() -> str:
            await let_go.wait()
            return "new"

        making = asyncio.create_task(self.cache.aget_or_fill("c", make, ttl=60, stale=60))
        await asyncio.sleep(0)
        self.assertEqual(await self.cache.aget_or_fill("c", make, ttl=60, stale=60), "old")
        let_go.set()
        self.assertEqual(await making, "new")

    async def test_who_waits_too_long_makes_it_for_itself(self) -> None:
        async def own() -> str:
            return "own"

        with self.cache._begin_fill("a", 0, False)[1]:
            self.assertEqual(await self.cache.aget_or_fill("a", own, wait=0), "own")


if __name__ == "__main__":
    unittest.main()
