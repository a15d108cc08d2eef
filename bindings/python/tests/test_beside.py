"""Metadata beside a value, and the moment when work on the value began."""

from __future__ import annotations

import asyncio
import unittest

import eyewall

from .stage import CacheCase


class Metadata(CacheCase):
    def metadata(self, key: str) -> bytes:
        entry = self.cache.lookup(key)
        assert entry is not None
        return entry.metadata

    def test_bytes_have_the_callers_own(self) -> None:
        cache, own = self.cache, b"text/html"
        cache.put("put", b"1", metadata=own)
        cache.add("add", bytearray(b"1"), metadata=own)  # A buffer is bytes, where there is no serializer.
        serial = cache.put("replace", b"0")
        cache.replace("replace", serial, b"1", metadata=own)
        with cache.writer("writer", metadata=own) as writer:
            writer.write(b"1")
        with cache.claim("claim") as claim:
            claim.put(b"1", metadata=own)
        cache.get_or_fill("fill", lambda: b"1", metadata=own)
        asyncio.run(cache.aput("aput", b"1", metadata=own))

        async def make() -> bytes:
            return b"1"

        asyncio.run(cache.aget_or_fill("afill", make, metadata=own))
        self.assertEqual(sum(1 for _ in cache), 8)
        for key in list(cache):
            self.assertEqual((self.metadata(str(key)), cache[key]), (own, b"1"), key)
        view = cache.get_view("put")
        assert view is not None and isinstance(view.obj, eyewall.View)
        self.assertEqual(view.obj.metadata, own)
        cache.put("put", b"1", metadata=b"")
        self.assertEqual(self.metadata("put"), b"")

    def test_other_values_have_theirs(self) -> None:
        for value in ("text", 1, 1.5, None, True):
            with self.assertRaisesRegex(eyewall.InvalidError, "goes only with a value of bytes"):
                self.cache.put("a", value, metadata=b"mine")
        with eyewall.Cache(self.path, serializer="json") as cache, self.assertRaisesRegex(eyewall.InvalidError, "convert the value to bytes"):
            cache.put("a", [1], metadata=b"mine")
        with self.assertRaises(TypeError):
            self.cache.put("a", b"1", metadata="text")  # type: ignore[arg-type]
        self.assertNotIn("a", self.cache)

    def test_no_metadata_makes_another_value_of_bytes(self) -> None:
        for byte in range(256):
            own = bytes([byte])
            try:
                self.cache.put("a", b"12345678", metadata=own)
            except eyewall.InvalidError as error:
                self.assertIn("add another byte", str(error))
                self.assertTrue(byte in (0xC0, 0xC1) or byte >= 0xF5)
                self.cache.put("a", b"12345678", metadata=own * 2)
            self.assertEqual(self.cache["a"], b"12345678")

    def test_metadata_that_is_too_long_is_refused(self) -> None:
        with self.assertRaises(eyewall.MetadataTooLongError):
            self.cache.put("a", b"1", metadata=bytes(70_000))


class Moments(CacheCase):
    def test_a_value_purged_since_a_moment_stays_purged(self) -> None:
        cache = self.cache
        before = cache.now()
        self.assertEqual(before, cache.now())
        cache.purge_tag("news")
        self.assertNotEqual(before, cache.now())
        cache.put("put", b"old", tags="news", begun_in=before)
        cache.add("add", b"old", tags="news", begun_in=before)
        cache.put_negative("negative", 404, tags="news", begun_in=before)
        cache.put_many({"many": b"old"}, tags=(tag for tag in ["news"]), begun_in=before)
        asyncio.run(cache.aput("aput", b"old", tags="news", begun_in=before))
        with cache.writer("writer", tags="news", begun_in=before) as writer:
            writer.write(b"old")
        with cache.claim("claim") as claim:
            claim.put(b"old", tags="news", begun_in=before)
        self.assertEqual(list(cache), [])
        cache.put("other", b"kept", tags="weather", begun_in=before)
        cache.put("put", b"new", tags="news", begun_in=cache.now())
        self.assertEqual(sorted(map(str, cache)), ["other", "put"])

    def test_a_touch_of_before_does_not_undo_a_purge(self) -> None:
        cache = self.cache
        cache.put("a", b"1", ttl=60, stale=60, tags="news")
        before = cache.now()
        cache.purge_tag("news", soft=True)
        cache.touch("a", 600, stale=60, begun_in=before)
        self.assertNotIn("a", cache)
        cache.touch("a", 600, stale=60)
        self.assertIn("a", cache)

    def test_a_touch_concerns_one_version(self) -> None:
        serial = self.cache.put("a", b"1", ttl=60)
        self.assertTrue(self.cache.touch("a", 600, serial=serial))
        self.cache.put("a", b"2", ttl=60)
        self.assertFalse(self.cache.touch("a", 600, serial=serial))

    def test_a_moment_of_another_cache_is_before_everything(self) -> None:
        with eyewall.Cache(size="1M") as other:
            self.cache.put("a", b"1", begun_in=other.now())
        self.assertNotIn("a", self.cache)

    def test_many_are_tagged_by_an_iterator(self) -> None:
        self.cache.put_many({"a": 1, "b": 2}, tags=iter(["x"]))
        self.cache.purge_tag("x")
        self.assertEqual(list(self.cache), [])


if __name__ == "__main__":
    unittest.main()
