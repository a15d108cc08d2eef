"""Memoized functions."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

import eyewall

from .stage import CacheCase


class Memoize(CacheCase):
    def setUp(self) -> None:
        super().setUp()
        self.calls: list[Any] = []

    def test_it_is_called_once_for_equal_arguments(self) -> None:
        @self.cache.memoize(ttl=60)
        def doubled(number: float, *, times: int = 2) -> float:
            """Says what it does."""
            self.calls.append(number)
            return number * times

        for number in (1, 1, 1.0, True, 2):
            self.assertEqual(doubled(number), number * 2)
        self.assertEqual(doubled(1, times=3), 3)
        self.assertEqual(repr(self.calls), "[1, 1.0, True, 2, 1]", "arguments of other types are others")
        self.assertEqual((doubled.key.__name__, doubled.__doc__), ("key", "Says what it does."))
        self.assertIn(doubled.key(1), self.cache)
        self.assertTrue(doubled.forget(1))
        self.assertFalse(doubled.forget(1))
        doubled.purge()
        self.assertNotIn(doubled.key(2), self.cache)

    def test_arguments_make_different_keys(self) -> None:
        @self.cache.memoize(name="kinds")
        def kind(*args: object, **kwargs: object) -> int:
            self.calls.append(args)
            return len(self.calls)

        different: list[tuple[object, ...]] = [
            (), (None,), ("",), (b"",), ("1",), (1,), ("1,1",), ("1", "1"), ((1, 1),), ([1, 1],), ((1,), 1), ({"a": 1, "b": 2},), ("x" * 1000,),
            ("x" * 1001,),
        ]  # fmt: skip
        for arguments in different:
            kind(*arguments)
        self.assertEqual(len(self.calls), len(different))
        self.assertEqual(kind({"b": 2, "a": 1}), kind({"a": 1, "b": 2}))
        self.assertLess(len(kind.key("x" * 1000)), 300)
        with self.assertRaisesRegex(TypeError, "key=function"):
            kind(object())

    def test_tags_and_keys_of_arguments(self) -> None:
        @self.cache.memoize(ttl=60, stale=30, tag=lambda user: [f"user:{user.number}", "users"], key=lambda user: str(user.number))
        def name(user: Any) -> str:
            self.calls.append(user)
            return f"name {user.number}"

        class User:
            number = 7

        self.assertEqual([name(User()), name(User())], ["name 7"] * 2)
        self.cache.purge_tag("user:7")
        name(User())
        name.purge(soft=True)
        name(User())
        self.assertEqual(len(self.calls), 3)

        @self.cache.memoize(tag="front")
        def page() -> str:
            return "page"

        page()
        entry = self.cache.lookup(page.key())
        assert entry
        self.assertEqual(entry.tags[1:], ["front"])

    def test_methods(self) -> None:
        cache, calls = self.cache, self.calls

        class Shop:
            @cache.memoize(key=lambda self, number: f"{self.name} {number}")
            def price(self, number: int) -> int:
                calls.append(number)
                return number * 100

            name = "books"

        for _ in range(2):
            self.assertEqual(Shop().price(7), 700)
        self.assertEqual(calls, [7])

    def test_a_bound_method_is_forgotten_and_purged(self) -> None:
        calls = self.calls

        class Shop:
            def __init__(self, name: str) -> None:
                self.name = name

            @self.cache.memoize(key=lambda shop, number: f"{shop.name} {number}")
            def price(self, number: int) -> int:
                calls.append(number)
                return number

        shop = Shop("a")
        self.assertEqual([shop.price(1), shop.price(1)], [1, 1])
        self.assertTrue(shop.price.forget(shop, 1))
        shop.price(1)
        shop.price.purge()
        shop.price(1)
        self.assertEqual(calls, [1, 1, 1])

    def test_coroutines(self) -> None:
        @self.cache.memoize(ttl=60)
        async def page(number: int) -> str:
            self.calls.append(number)
            await asyncio.sleep(0)
            return f"page {number}"

        async def main() -> None:
            self.assertEqual(await asyncio.gather(*(page(1) for _ in range(50))), ["page 1"] * 50)
            self.assertEqual(await page(2), "page 2")

        asyncio.run(main())
        self.assertEqual(self.calls, [1, 2])

    def test_failures_are_not_kept(self) -> None:
        @self.cache.memoize()
        def fails() -> int:
            self.calls.append(None)
            if len(self.calls) == 1:
                raise ZeroDivisionError
            return 1

        with self.assertRaises(ZeroDivisionError):
            fails()
        self.assertEqual(fails(), 1)

    def test_results_with_a_serializer(self) -> None:
        with eyewall.Cache(self.path, serializer="json") as cache:

            @cache.memoize()
            def row(number: int) -> dict[str, int]:
                return {"number": number}

            self.assertEqual([row(1), row(1)], [{"number": 1}] * 2)


if __name__ == "__main__":
    unittest.main()
