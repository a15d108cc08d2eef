"""A cache is used like a dict, with times, tags and versions."""

from __future__ import annotations

import threading
import unittest
from datetime import timedelta

import eyewall

from .stage import CacheCase


class Mapping(CacheCase):
    def test_it_is_a_mapping(self) -> None:
        cache = self.cache
        cache["a"] = b"1"
        self.assertEqual(cache["a"], b"1")
        self.assertIn("a", cache)
        self.assertNotIn("b", cache)
        self.assertEqual(cache.get("b", "none"), "none")
        self.assertIsNone(cache.get("b"))
        with self.assertRaises(KeyError) as raised:
            cache["b"]
        self.assertEqual(raised.exception.args, ("b",))
        del cache["a"]
        with self.assertRaises(KeyError):
            del cache["a"]
        self.assertTrue(cache, "an empty cache is true: it has no length")

    def test_keys_are_text_or_bytes(self) -> None:
        self.cache["caf\u00e9"] = b"1"
        self.assertEqual(self.cache["caf\u00e9".encode()], b"1")
        self.cache[b"\xff\x00"] = b"2"
        self.assertEqual(set(self.cache), {"caf\u00e9", b"\xff\x00"})
        self.assertEqual(dict(self.cache.items()), {"caf\u00e9": b"1", b"\xff\x00": b"2"})
        self.assertEqual(sorted(self.cache.values()), [b"1", b"2"])
        self.assertEqual(set(self.cache.keys()), set(self.cache))
        for key in (1, None, ("a",)):
            with self.assertRaisesRegex(TypeError, "a key is str or bytes"):
                self.cache.get(key)  # type: ignore[arg-type]
        with self.assertRaises(UnicodeEncodeError):
            self.cache.get("\ud800")

    def test_pop_and_setdefault(self) -> None:
        self.assertEqual(self.cache.setdefault("a", "first"), "first")
        self.assertEqual(self.cache.setdefault("a", "second"), "first")
        self.assertEqual(self.cache.pop("a"), "first")
        self.assertEqual(self.cache.pop("a", None), None)
        with self.assertRaises(KeyError):
            self.cache.pop("a")

    def test_one_of_many_pops(self) -> None:
        popped: list[object] = []
        for _ in range(20):
            self.cache["job"] = 1
            threads = [threading.Thread(target=lambda: popped.append(self.cache.pop("job", None))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(popped.count(1), 20)

    def test_many_at_once(self) -> None:
        wanted = [f"key {number}" for number in range(100)]
        self.cache.put_many({key: number for number, key in enumerate(wanted)}, ttl=60, tags="numbers")
        self.assertEqual(self.cache.get_many([*wanted, "absent"]), {key: number for number, key in enumerate(wanted)})
        self.cache.update([("key 1", "new")])
        self.assertEqual(self.cache["key 1"], "new")
        self.cache.purge_tag("numbers")
        self.assertEqual(list(self.cache), ["key 1"])

    def test_times(self) -> None:
        self.cache.put("a", 1, ttl=0)
        self.assertNotIn("a", self.cache)
        self.cache.put("a", 1, ttl=timedelta(hours=1))
        entry = self.cache.lookup("a")
        assert entry and entry.ttl_left
        self.assertTrue(3500 < entry.ttl_left <= 3600)
        self.cache.touch("a", 7200)
        entry = self.cache.lookup("a")
        assert entry and entry.ttl_left
        self.assertGreater(entry.ttl_left, 7000)
        self.cache.touch("a")
        entry = self.cache.lookup("a")
        assert entry
        self.assertIsNone(entry.ttl_left)
        self.cache.put("b", 1, ttl=float("inf"))
        entry = self.cache.lookup("b")
        assert entry
        self.assertIsNone(entry.ttl_left)
        self.assertFalse(self.cache.touch("absent", 1))
        with self.assertRaisesRegex(ValueError, "negative"):
            self.cache.put("a", 1, ttl=-1)
        with self.assertRaisesRegex(TypeError, "number of seconds"):
            self.cache.put("a", 1, ttl="1")  # type: ignore[arg-type]

    def test_versions(self) -> None:
        self.assertIsNotNone(self.cache.add("a", 1))
        self.assertIsNone(self.cache.add("a", 2))
        entry = self.cache.lookup("a")
        assert entry
        newer = self.cache.replace("a", entry.serial, 3)
        assert newer
        self.assertIsNone(self.cache.replace("a", entry.serial, 4))
        self.assertFalse(self.cache.remove("a", serial=entry.serial))
        self.assertTrue(self.cache.remove("a", serial=newer))

    def test_purges_and_negative_entries(self) -> None:
        self.cache.put("/a", 1, ttl=60, stale=60, tags=["x", "y"])
        self.cache.put_negative("/b", 404, ttl=60, tags="x")
        negative = self.cache.lookup("/b")
        assert negative
        self.assertEqual((negative.state, negative.reason, negative.value, negative.tags), ("negative", 404, None, ["x"]))
        self.assertIsNone(self.cache.get("/b"))
        self.cache.purge_prefix("/a", soft=True)
        self.assertNotIn("/a", self.cache)
        stale = self.cache.lookup("/a")
        assert stale
        self.assertEqual((stale.state, stale.value, stale.tags), ("stale", 1, ["x", "y"]))
        self.cache.purge_all()
        self.assertIsNone(self.cache.lookup("/a"))
        self.assertGreaterEqual(self.cache.sweep(), 2)
        self.cache["c"] = 1
        self.assertEqual(self.cache.clear(), 1)

    def test_counters(self) -> None:
        self.assertEqual(self.cache.increment("n"), 1)
        self.assertEqual(self.cache.increment("n", -3), -2)
        self.assertEqual(self.cache["n"], -2)
        self.assertEqual(self.cache.increment("stock", -1, start=10, min=0, max=10), 9)
        self.assertEqual(self.cache.increment("stock", -100, min=0), 0)
        self.cache["set"] = 41
        self.assertEqual(self.cache.increment("set"), 42)
        self.cache["text"] = "words"
        with self.assertRaises(eyewall.NotACounterError):
            self.cache.increment("text")

    def test_claims(self) -> None:
        with self.cache.claim("a") as claim:
            self.assertFalse(claim.found)
            self.assertIsNotNone(claim.put("new", ttl=60))
            with self.assertRaises(eyewall.EndedError):
                claim.put("again")
        with self.cache.claim("a") as claim:
            self.assertEqual((claim.key, claim.value, claim.found), (b"a", "new", True))
            self.cache["a"] = "beside it"
            self.assertIsNone(claim.put("late"))
        self.assertEqual(self.cache["a"], "beside it")
        with self.cache.claim("a") as claim:
            self.assertTrue(claim.remove())
        self.assertNotIn("a", self.cache)
        with self.cache.claim("a"):
            pass
        impatient = eyewall.Cache(self.path, lock_deadline=0.01)
        self.addCleanup(impatient.close)
        with self.cache.claim("a"), self.assertRaises(eyewall.BusyError) as raised:
            impatient.claim("a")
        self.assertIsInstance(raised.exception, TimeoutError)

    def test_values_in_pieces(self) -> None:
        with self.cache.writer("a", tags=["x"]) as writer:
            self.assertEqual(writer.write(b"one, "), 5)
            writer.write(bytearray(b"two"))
            self.assertNotIn("a", self.cache)
        self.assertEqual(self.cache["a"], b"one, two")
        with self.assertRaises(ZeroDivisionError), self.cache.writer("b") as writer:
            writer.write(b"half")
            raise ZeroDivisionError
        self.assertNotIn("b", self.cache)
        writer = self.cache.writer("c")
        self.cache["c"] = 1
        self.assertIsNone(writer.commit())
        with self.assertRaises(eyewall.EndedError):
            writer.write(b"more")
        writer = self.cache.writer("d")
        with self.assertRaises(eyewall.EntryTooLargeError):
            writer.write(bytes(3 << 20))
        writer.abort()

    def test_views(self) -> None:
        self.cache["a"] = b"in its place"
        view = self.cache.get_view("a")
        assert view is not None
        self.assertTrue(view.readonly)
        self.assertEqual(bytes(view[3:6]), b"its")
        self.assertEqual(self.cache.stats()["pins"], 1)
        del self.cache["a"]
        for number in range(40):
            self.cache[f"flood {number}"] = bytes(200_000)
        self.assertEqual(view, b"in its place")
        obj = view.obj
        assert isinstance(obj, eyewall.View)
        obj.check_intact()
        del obj
        part = view[:2]
        view.release()
        del view
        self.assertEqual(bytes(part), b"in")
        del part
        self.assertEqual(self.cache.stats()["pins"], 0)
        self.assertIsNone(self.cache.get_view("a"))

    def test_numbers(self) -> None:
        self.cache["a"] = 1
        self.cache.get("a")
        stats = self.cache.stats()
        self.assertEqual((stats["entries"], stats["hits"], stats["size_bytes"]), (1, 1, 4 << 20))
        self.assertEqual((self.cache.size, self.cache.entry_bytes_max), (4 << 20, 256 << 10))
        self.assertEqual(str(self.cache.path), self.path)
        self.assertFalse(self.cache.is_read_only or self.cache.is_failed)
        self.cache.sync()
        self.assertTrue(self.cache.is_resident("a"))
        self.assertIsNone(self.cache.is_resident("absent"))
        self.assertTrue(self.cache.prefault("a"))
        self.assertEqual(repr(self.cache), f"<eyewall.Cache {self.path}>")


if __name__ == "__main__":
    unittest.main()
