"""Flask-Caching and other users of cachelib store their values in a volume."""

from __future__ import annotations

import importlib.util
import unittest
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import eyewall

from .stage import CacheCase

if TYPE_CHECKING:
    from eyewall.cachelib import EyewallCache


@unittest.skipUnless(importlib.util.find_spec("cachelib"), "cachelib isn't installed")
class Cachelib(CacheCase):
    def opened(self, **options: Any) -> EyewallCache:
        from eyewall.cachelib import EyewallCache

        cache = EyewallCache(self.path, **options)
        self.addCleanup(cache.volume.close)
        return cache

    def test_its_interface(self) -> None:
        cache = self.opened(key_prefix="shop ")
        self.cache["other"] = "stays"
        self.assertTrue(cache.set("a", {"value": (1, 2)}))
        self.assertEqual(cache.get("a"), {"value": (1, 2)})
        self.assertFalse(cache.add("a", 2))
        self.assertTrue(cache.add("b", None))
        self.assertTrue(cache.has("b"))
        self.assertEqual(cache.get_many("a", "absent", "b"), [{"value": (1, 2)}, None, None])
        self.assertEqual(cache.get_dict("a", "absent"), {"a": {"value": (1, 2)}, "absent": None})
        self.assertEqual(cache.set_many({"x": 1, "y": 2}), ["x", "y"])
        self.assertEqual(cache.delete_many("x", "absent"), ["x"])
        self.assertEqual((cache.inc("y"), cache.dec("y", 3), cache.inc("new")), (3, 0, 1))
        self.assertTrue(cache.delete("y"))
        self.assertFalse(cache.delete("y"))
        self.assertTrue(cache.clear())
        self.assertFalse(cache.has("a"))
        self.assertEqual(self.cache["other"], "stays")

    def test_times(self) -> None:
        cache = self.opened(default_timeout=100)
        for timeout, left in ((None, 100), (7, 7), (0, None)):
            cache.set("a", 1, timeout)
            entry = cache.volume.lookup("a")
            assert entry
            self.assertEqual(entry.ttl_left and round(entry.ttl_left), left)

    def test_an_expired_value_is_absent(self) -> None:
        """As in other caches of cachelib, a timeout may lie in the past."""
        for timeout in (-1, timedelta(seconds=-1)):
            cache = self.opened()
            self.assertTrue(cache.set("a", 1, 60))
            self.assertTrue(cache.set("a", 2, timeout))
            self.assertIsNone(cache.get("a"))
            cache.set("b", 1, timedelta(0))
            entry = cache.volume.lookup("b")
            assert entry
            self.assertIsNone(entry.ttl_left)

    def test_a_value_that_is_too_large_is_refused_and_removed(self) -> None:
        cache = self.opened()
        cache.set("a", 1)
        self.assertFalse(cache.set("a", bytes(3 << 20)))
        self.assertFalse(cache.has("a"))
        self.assertFalse(cache.add("a", bytes(3 << 20)))

    def test_equal_options_share_one_volume(self) -> None:
        self.assertIs(self.opened().volume, self.opened(key_prefix="b").volume)
        with self.assertRaisesRegex(ValueError, "is open in this process with"):
            self.opened(serializer="json")

    @unittest.skipUnless(importlib.util.find_spec("flask_caching"), "Flask-Caching isn't installed")
    def test_flask_caching(self) -> None:
        from flask import Flask
        from flask_caching import Cache

        app = Flask("shop")
        settings = {"CACHE_TYPE": "eyewall.cachelib.EyewallCache", "CACHE_ARGS": [self.path], "CACHE_OPTIONS": {"serializer": "pickle"}}
        cache = Cache(app, config=settings)
        calls: list[int] = []

        @app.route("/<int:number>")
        @cache.cached(timeout=60)
        def page(number: int) -> str:
            calls.append(number)
            return f"page {number}"

        @cache.memoize(60)
        def doubled(number: int) -> int:
            calls.append(number)
            return 2 * number

        client = app.test_client()
        self.assertEqual([client.get("/7").text for _ in range(2)], ["page 7"] * 2)
        self.assertEqual(calls, [7])
        with app.app_context():
            self.assertEqual([doubled(2), doubled(2)], [4, 4])
            cache.delete_memoized(doubled, 2)
            doubled(2)
            self.assertEqual(calls, [7, 2, 2])
            self.assertTrue(cache.clear())
        client.get("/7")
        self.assertEqual(calls, [7, 2, 2, 7])


if __name__ == "__main__":
    unittest.main()
