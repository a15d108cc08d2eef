"""Coroutines use a cache without blocking their event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import unittest
from datetime import timedelta

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

        # More than the number of threads.
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
        # This loop releases the child.
        await asyncio.sleep(0)
        await self.cache.aput("b", 1)
        self.assertFalse(waiting.done())
        os.write(end, b"x")
        self.assertEqual(await waiting, "from the child")
        self.assert_ends_well(child)

    async def test_a_cancelled_task_does_not_end_the_fill_for_others(self) -> None:
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

    async def test_failures_stale_values_and_negative_entries(self) -> None:
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

    async def test_a_caller_that_waits_too_long_makes_the_value_itself(self) -> None:
        async def own() -> str:
            return "own"

        with self.cache._begin_fill("a", 0, False)[1]:
            self.assertEqual(await self.cache.aget_or_fill("a", own, wait=0), "own")

    async def test_a_task_waits_for_another_up_to_its_limit(self) -> None:
        let_go = asyncio.Event()

        async def long() -> str:
            await let_go.wait()
            return "long"

        async def own() -> str:
            return "own"

        first = asyncio.create_task(self.cache.aget_or_fill("a", long))
        await asyncio.sleep(0)
        for wait in (0, 0.01, timedelta(milliseconds=10)):
            self.assertEqual(await self.cache.aget_or_fill("a", own, wait=wait), "own")
        let_go.set()
        self.assertEqual(await first, "long")
        self.assertEqual(self.cache["a"], "long")

    async def test_a_task_that_asks_for_its_own_key_makes_the_value_alone(self) -> None:
        async def inner() -> str:
            return "inner"

        async def outer() -> str:
            return "outer of " + await self.cache.aget_or_fill("a", inner, wait=0.01)

        self.assertEqual(await self.cache.aget_or_fill("a", outer), "outer of inner")

    async def test_another_task_makes_a_value_that_was_cancelled_from_within(self) -> None:
        let_go = asyncio.Event()

        async def cancelled() -> str:
            await let_go.wait()
            raise asyncio.CancelledError

        async def make() -> str:
            return "made"

        first = asyncio.create_task(self.cache.aget_or_fill("a", cancelled))
        await asyncio.sleep(0)
        others = [asyncio.create_task(self.cache.aget_or_fill("a", make)) for _ in range(5)]
        await asyncio.sleep(0)
        let_go.set()
        self.assertEqual(await asyncio.gather(*others), ["made"] * 5)
        with self.assertRaises(asyncio.CancelledError):
            await first

    async def test_an_absent_key_is_one_miss(self) -> None:
        async def make() -> str:
            return "made"

        await self.cache.aget_or_fill("a", make)
        stats = self.cache.stats()
        self.assertEqual((stats["misses"], stats["hits"]), (1, 0))
        await self.cache.aget_or_fill("a", make)
        stats = self.cache.stats()
        self.assertEqual((stats["misses"], stats["hits"]), (1, 1))

    async def test_a_loop_that_ends_leaves_no_waiting_thread(self) -> None:
        """Otherwise the interpreter would wait for it."""
        before = set(threading.enumerate())

        def other_loop() -> None:
            async def own() -> str:
                return "own"

            async def main() -> None:
                waiting = asyncio.create_task(self.cache.aget_or_fill("a", own, wait=3600))
                while not set(threading.enumerate()) - before - {thread}:
                    await asyncio.sleep(0)
                waiting.cancel()

            asyncio.run(main())

        with self.cache._begin_fill("a", 0, False)[1]:
            thread = threading.Thread(target=other_loop)
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(0.01)
            pool = self.cache._flights._threads
            assert pool is not None
            await asyncio.to_thread(pool.shutdown)

    async def test_loops_of_several_threads_make_it_once(self) -> None:
        calls: list[int] = []

        async def make() -> int:
            calls.append(threading.get_ident())
            await asyncio.sleep(0.01)
            return 1

        async def many() -> None:
            self.assertEqual(await asyncio.gather(*(self.cache.aget_or_fill("a", make) for _ in range(20))), [1] * 20)

        await asyncio.gather(*(asyncio.to_thread(asyncio.run, many()) for _ in range(4)))
        self.assertEqual(len(calls), 1)


if __name__ == "__main__":
    unittest.main()
