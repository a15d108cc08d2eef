"""Followers read a value while a writer writes it."""

from __future__ import annotations

import io
import os
import shutil
import signal
import threading
import unittest

import eyewall

from .stage import CacheCase


class Streams(CacheCase):
    def followed(self, key: str) -> eyewall.Follower:
        follower = self.cache.follow(key)
        assert follower is not None
        self.addCleanup(follower.end)
        return follower

    def test_followers_read_a_value_while_it_is_written(self) -> None:
        self.assertIsNone(self.cache.follow("feed"))
        with self.cache.writer("feed", metadata=b"text/xml") as writer:
            writer.write(b"<item/>")
            with self.followed("feed") as follower:
                self.assertEqual(follower.metadata, b"text/xml")
                self.assertEqual(follower.read(3), b"<it")
                self.assertEqual(follower.read(), b"em/>")
                with self.assertRaises(eyewall.BusyError):
                    follower.read(wait=0)
                writer.write(b"<last/>")
                serial = writer.commit()
                self.assertEqual(b"".join(follower), b"<last/>")
                self.assertEqual(follower.read(), b"", "and that was all, however often it is asked")
                self.assertEqual(follower.serial, serial)
            with self.assertRaises(eyewall.EndedError):
                follower.read()
        self.assertEqual(self.cache["feed"], b"<item/><last/>")
        self.assertIsNone(self.cache.follow("feed"))

    def test_another_process_reads_it_as_a_file(self) -> None:
        (ready, is_ready), pieces = os.pipe(), [bytes([number]) * 10_000 for number in range(20)]
        writer = self.cache.writer("feed", length=200_000)
        writer.write(pieces[0])

        def child() -> None:
            follower, copied = self.cache.follow("feed"), io.BytesIO()
            assert follower is not None
            os.write(is_ready, b"x")
            shutil.copyfileobj(follower, copied)
            assert copied.getvalue() == b"".join(pieces)

        reader = self.forked(child)
        os.read(ready, 1)
        for piece in pieces[1:]:
            writer.write(piece)
        writer.commit()
        self.assert_ends_well(reader)

    def test_a_writer_that_gives_up_interrupts_its_followers(self) -> None:
        writer = self.cache.writer("feed")
        writer.write(b"half")
        follower = self.followed("feed")
        self.assertEqual(follower.read(), b"half")
        writer.abort()
        with self.assertRaises(eyewall.InterruptedWriteError):
            follower.read()
        self.assertIsInstance(eyewall.InterruptedWriteError(), eyewall.RetryError)

    def test_a_wait_is_interrupted_by_signals(self) -> None:
        writer = self.cache.writer("feed")
        follower = self.followed("feed")
        previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGALRM, previous)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with self.assertRaises(KeyboardInterrupt):
            follower.read(wait=60)
        writer.write(b"more")
        self.assertEqual(follower.read(), b"more")
        writer.abort()

    def test_one_thread_at_a_time_reads(self) -> None:
        writer = self.cache.writer("feed")
        follower, begun = self.followed("feed"), threading.Event()
        read: list[bytes] = []

        def reader() -> None:
            begun.set()
            read.append(follower.read())

        thread = threading.Thread(target=reader)
        thread.start()
        begun.wait()
        # Between its waits the follower is free briefly.
        while True:
            try:
                follower.read(wait=0)
            except eyewall.BusyError:
                continue
            except RuntimeError as error:
                self.assertIn("another thread uses the follower", str(error))
                break
        writer.write(b"for the thread")
        thread.join()
        self.assertEqual(read, [b"for the thread"])
        writer.abort()

    def test_a_child_neither_reads_nor_ends_its_parents_followers(self) -> None:
        writer = self.cache.writer("feed")
        follower = self.followed("feed")

        def child() -> None:
            try:
                follower.read(wait=0)
                raise AssertionError("the child could read it")
            except eyewall.InterruptedWriteError:
                follower.end()

        self.assert_ends_well(self.forked(child))
        writer.write(b"on")
        self.assertEqual(follower.read(), b"on")
        writer.abort()

    def test_lengths_and_keys_are_checked(self) -> None:
        with self.cache.writer("feed"):
            for size in (0, -1):
                with self.assertRaisesRegex(ValueError, "at least 1"):
                    self.followed("feed").read(size)
        with self.assertRaises(eyewall.KeyEmptyError):
            self.cache.follow("")
        with eyewall.Cache(self.path, read_only=True) as reader, self.assertRaises(eyewall.ReadOnlyError):
            reader.follow("feed")


class Writers(CacheCase):
    def test_a_writer_is_not_ended_while_a_thread_writes(self) -> None:
        """Another thread either aborts, or gets an error."""
        writer, begun = self.cache.writer("a"), threading.Event()

        def write() -> None:
            begun.set()
            try:
                while True:
                    writer.write(bytes(10_000))
            except (eyewall.EndedError, eyewall.EntryTooLargeError, eyewall.InterruptedWriteError):
                pass
            except RuntimeError as error:
                # The other thread was just using it.
                self.assertIn("another thread", str(error))

        thread = threading.Thread(target=write)
        thread.start()
        begun.wait()
        while True:
            try:
                writer.abort()
                break
            except RuntimeError as error:
                self.assertIn("another thread uses the writer", str(error))
        thread.join()
        with self.assertRaises(eyewall.EndedError):
            writer.write(b"more")
        with self.assertRaises(eyewall.EndedError):
            writer.commit()
        self.assertNotIn("a", self.cache)


if __name__ == "__main__":
    unittest.main()
