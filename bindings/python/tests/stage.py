"""Helpers of all tests."""

from __future__ import annotations

import os
import tempfile
import traceback
import unittest
from collections.abc import Callable

import eyewall


class CacheCase(unittest.TestCase):
    """A test with its own volume."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="eyewall-python-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = f"{self.folder}/volume"
        self.cache = eyewall.Cache(self.path, size="4M")
        self.addCleanup(self.cache.close)

    def forked(self, work: Callable[[], None]) -> int:
        """Runs code in a forked child. An exception is printed and fails the child."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        return child

    def assert_ends_well(self, child: int) -> None:
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
