"""Error messages say what to do."""

from __future__ import annotations

import glob
import os
import unittest

import eyewall

from .stage import CacheCase


class Errors(CacheCase):
    def test_keys_and_tags(self) -> None:
        for key, error in ((b"", eyewall.KeyEmptyError), (b"k" * 70_000, eyewall.KeyTooLongError)):
            with self.assertRaises(error) as raised:
                self.cache.get(key)
            self.assertIsInstance(raised.exception, ValueError)
        with self.assertRaises(eyewall.TagLengthError):
            self.cache.put("a", 1, tags=[""])
        with self.assertRaises(eyewall.TooManyTagsError):
            self.cache.put("a", 1, tags=map(str, range(40)))
        with self.assertRaises(TypeError):
            self.cache.put("a", 1, tags=[1])  # type: ignore[list-item]

    def test_opening(self) -> None:
        with self.assertRaises(eyewall.NotFoundError) as raised:
            eyewall.Cache(f"{self.folder}/absent", must_exist=True)
        self.assertIsInstance(raised.exception, FileNotFoundError)
        with open(f"{self.folder}/text", "w") as text:
            text.write("something else\n" * 1000)
        with self.assertRaisesRegex(eyewall.ForeignError, "left as it is"):
            eyewall.Cache(text.name)
        with self.assertRaisesRegex(eyewall.OptionsDifferError, "size"):
            eyewall.Cache(self.path, size="8M")
        for size, error in ((1, eyewall.OutOfRangeError), ("4X", ValueError), ("M", ValueError), (-1, ValueError)):
            with self.subTest(size=size), self.assertRaises(error):
                eyewall.Cache(f"{self.folder}/new", size=size)
        with self.assertRaises(eyewall.NoTierError):
            eyewall.Cache(size="1M", tier="1M")
        with self.assertRaisesRegex(ValueError, "unclean"):
            eyewall.Cache(self.path, unclean="drop")  # type: ignore[arg-type]

    def test_advice_names_the_python_options(self) -> None:
        with self.assertRaisesRegex(eyewall.NotFoundError, "open it without must_exist$"):
            eyewall.Cache(f"{self.folder}/absent", must_exist=True)
        # Views become copies before they hold too much. A writer can't.
        writers = []
        with (
            eyewall.Cache(size="4M", entry_bytes_max="1M") as cache,
            self.assertRaisesRegex(eyewall.PinnedError, "release some views and retry"),
        ):
            for number in range(10):
                writers.append(cache.writer(f"key {number}", length=900_000))
        for writer in writers:
            writer.abort()

    @unittest.skipIf(os.getuid() == 0, "root may write everything")
    def test_advice_without_write_permission(self) -> None:
        os.chmod(self.path, 0o400)
        with self.assertRaisesRegex(eyewall.ReadOnlyError, "read_only=True"):
            eyewall.Cache(self.path)

    def test_a_broken_file(self) -> None:
        path = f"{self.folder}/broken"
        with open(path, "wb"):
            pass
        with self.assertRaisesRegex(eyewall.CorruptError, "put_aside_broken=True"):
            eyewall.Cache(path, size="1M")
        with eyewall.Cache(path, size="1M", put_aside_broken=True) as cache:
            cache["a"] = 1
        self.assertEqual(len(glob.glob(f"{path}.broken-*")), 1)

    def test_hits_are_verified_if_that_is_set(self) -> None:
        path, value = f"{self.folder}/careful", b"a value that is damaged later"
        with eyewall.Cache(path, size="1M", verify_hits=True) as cache:
            cache["a"] = value
            self.assertEqual(cache["a"], value)
            with open(path, "r+b") as file:
                file.seek(file.read().index(value))
                file.write(b"#")
            self.assertNotIn("a", cache)

    def test_purges_wait_for_the_node_of_a_fleet(self) -> None:
        path = f"{self.folder}/of-a-fleet"
        with eyewall.Cache(path, size="1M") as cache:
            cache.purge_tag("before")
            self.assertFalse(os.path.exists(f"{path}.purges"))
        with eyewall.Cache(path, fleet=True) as cache:
            cache.purge_tag("post-7")
            with open(f"{path}.purges", "rb") as file:
                self.assertIn(b"post-7", file.read())

    def test_read_only(self) -> None:
        self.cache["a"] = 1
        with eyewall.Cache(self.path, read_only=True) as cache:
            self.assertEqual(cache["a"], 1)
            self.assertTrue(cache.is_read_only)
            with self.assertRaises(PermissionError) as raised:
                cache["a"] = 2
            self.assertIsInstance(raised.exception, eyewall.ReadOnlyError)

    def test_closed(self) -> None:
        self.cache["a"] = b"1"
        view, claim, walk = self.cache.get_view("a"), self.cache.claim("b"), self.cache.items()
        self.cache.close()
        self.cache.close()
        self.assertTrue(self.cache.closed)
        for call in (lambda: self.cache.get("a"), lambda: self.cache.put("a", 1), self.cache.keys, lambda: self.cache.path):
            with self.assertRaisesRegex(eyewall.ClosedError, "open another"):
                call()
        self.assertEqual(view, b"1")
        self.assertIsNotNone(claim.put(2))
        self.assertEqual(dict(walk), {"a": b"1", "b": 2})
        self.assertEqual(repr(self.cache), "<eyewall.Cache closed>")

    def test_a_truncated_file(self) -> None:
        # Use a volume of its own: the one of all tests wouldn't survive.
        path = f"{self.folder}/truncated"
        with eyewall.Cache(path, size="4M", survive_sigbus=True) as cache:
            for number in range(40):
                cache[f"key {number}"] = bytes(50_000)
            view = cache.get_view("key 39")
            assert view is not None
            os.truncate(path, 4096)
            with self.assertRaisesRegex(eyewall.FailedError, "truncated"):
                for number in range(40):
                    cache.get(f"key {number}")
            self.assertTrue(cache.is_failed)
            held = view.obj
            assert isinstance(held, eyewall.View)
            with self.assertRaises(eyewall.FailedError):
                held.check_intact()
            with self.assertRaises(eyewall.FailedError):
                list(cache)
            del view, held


if __name__ == "__main__":
    unittest.main()
