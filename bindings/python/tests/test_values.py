"""Values keep their type for every reader. Only caches with the pickle serializer read pickles."""

from __future__ import annotations

import enum
import importlib.util
import os
import unittest
from typing import Any

import eyewall
from eyewall import Serializer, SerializerError, UntrustedError

from .stage import CacheCase

PLAIN: list[Any] = [b"", b"\x00\xff", "", "caf\u00e9 \U0001f40d", 0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(10**40)]
PLAIN += [0.5, -0.0, float("inf"), True, False, None]
STRUCTURES: list[Any] = [{"a": [1, 2.5, None, "x"]}, [], {}]


class Colour(enum.Enum):
    RED = 1


class Values(CacheCase):
    def opened(self, serializer: Any = None, **options: Any) -> eyewall.Cache:
        cache = eyewall.Cache(self.path, serializer=serializer, **options)
        self.addCleanup(cache.close)
        return cache

    def assert_comes_back(self, cache: eyewall.Cache, value: Any) -> None:
        cache["value"] = value
        found = cache["value"]
        self.assertEqual((type(found), repr(found)), (type(value), repr(value)))

    def test_plain_values_need_no_serializer_and_are_the_same_with_any(self) -> None:
        for serializer in (None, "json", "pickle"):
            cache = self.opened(serializer)
            for value in PLAIN:
                with self.subTest(serializer=serializer, value=value):
                    self.assert_comes_back(cache, value)
                    self.assertEqual(self.cache["value"], value)

    def test_other_languages_read_the_same_bytes(self) -> None:
        for value in (b"page", bytearray(b"page"), memoryview(b"page")):
            self.cache["page"] = value
            entry = self.cache.lookup("page")
            assert entry
            self.assertEqual((entry.value, entry.metadata), (b"page", b""))
        # A counter, in every language.
        self.cache["n"] = 258
        self.assertEqual(bytes(self.cache.get_view("n") or b""), (258).to_bytes(8, "little"))
        self.cache["text"] = "caf\u00e9"
        self.assertEqual(bytes(self.cache.get_view("text") or b""), "caf\u00e9".encode())

    def test_without_a_serializer_other_types_are_refused(self) -> None:
        for value in (*STRUCTURES, Colour.RED, object()):
            with self.subTest(value=value), self.assertRaisesRegex(SerializerError, "serializer="):
                self.cache["a"] = value
        self.assertNotIn("a", self.cache)

    def test_json(self) -> None:
        cache = self.opened("json")
        for value in STRUCTURES:
            self.assert_comes_back(cache, value)
        cache["caf\u00e9"] = {"caf\u00e9": 1}
        self.assertEqual(bytes(cache.get_view("caf\u00e9") or b""), '{"caf\u00e9":1}'.encode())
        self.assertEqual(self.cache["caf\u00e9"], {"caf\u00e9": 1}, "JSON is read by every cache")
        with self.assertRaises(TypeError):
            cache["a"] = object()

    def test_pickle_is_read_only_if_chosen(self) -> None:
        cache = self.opened("pickle")
        for value in (*STRUCTURES, (1, "a"), Colour.RED, bytearray(b"x")):
            self.assert_comes_back(cache, value)
        cache["a"] = (1, 2)
        for other in (self.cache, self.opened("json")):
            with self.assertRaisesRegex(SerializerError, "serializer='pickle'"):
                other.get("a")
            with self.assertRaises(SerializerError):
                list(other.values())
            self.assertIn("a", other)

    def test_pickle_is_refused_if_other_users_may_write(self) -> None:
        os.chmod(self.path, 0o660)
        with self.assertRaisesRegex(UntrustedError, "trust_writers"):
            self.opened("pickle")
        self.opened("pickle", trust_writers=True)["a"] = (1,)
        os.chmod(self.path, 0o600)
        os.chmod(self.folder, 0o777)
        with self.assertRaises(PermissionError):
            self.opened("pickle")
        os.chmod(self.folder, 0o1777)
        self.assertEqual(self.opened("pickle")["a"], (1,))

    def test_a_sticky_file_counts_as_writable_by_others(self) -> None:
        """The sticky bit counts for folders only."""
        os.chmod(self.path, 0o1666)
        with self.assertRaises(UntrustedError):
            self.opened("pickle")

    def test_pickle_is_refused_behind_a_link_into_a_folder_of_others(self) -> None:
        os.mkdir(f"{self.folder}/own", 0o700)
        link = f"{self.folder}/own/volume"
        os.symlink(self.path, link)
        eyewall.Cache(link, serializer="pickle").close()
        os.chmod(self.folder, 0o777)
        with self.assertRaises(UntrustedError):
            eyewall.Cache(link, serializer="pickle")

    @unittest.skipUnless(importlib.util.find_spec("msgpack"), "msgpack isn't installed")
    def test_msgpack(self) -> None:
        cache = self.opened("msgpack")
        for value in STRUCTURES:
            self.assert_comes_back(cache, value)
        self.assertEqual(self.cache["value"], {})

    def test_an_applications_own_serializer(self) -> None:
        cache = self.opened(Serializer(lambda value: repr(value).encode(), lambda data: data.decode()))
        cache["a"] = [1]
        self.assertEqual(cache["a"], "[1]")
        with self.assertRaisesRegex(SerializerError, "own serializer"):
            self.cache.get("a")
        wrong = self.opened(Serializer(lambda value: "text", lambda data: data))  # type: ignore[arg-type, return-value]
        with self.assertRaisesRegex(TypeError, "other than bytes"):
            wrong["a"] = [1]
        with self.assertRaisesRegex(ValueError, "serializer is 'yaml'"):
            self.opened("yaml")

    def test_a_serializer_may_use_the_cache(self) -> None:
        def loads(data: bytes) -> Any:
            cache.close()
            return data

        cache = self.opened(Serializer(lambda value: b"x", loads))
        cache["a"] = [1]
        self.assertEqual(cache["a"], b"x")
        self.assertTrue(cache.closed)

    def test_large_values(self) -> None:
        value = os.urandom(200_000)
        self.cache["large"] = value
        self.assertEqual(self.cache["large"], value)
        with self.assertRaisesRegex(eyewall.EntryTooLargeError, "entry_bytes_max"):
            self.cache["large"] = bytes(1 << 20)
        self.assertEqual(self.cache["large"], value)


if __name__ == "__main__":
    unittest.main()
