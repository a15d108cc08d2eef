"""Waits for the tasks of an event loop."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")

# Threads that wait for other processes. They are separate from the loop's own, so that waiting tasks don't keep
# others from storing.
_WAITING_AT_ONCE = 256


class Flights:
    """The flights in progress of each event loop, by key."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bytes, asyncio.Task[Any]]] = WeakKeyDictionary()
        self._threads: ThreadPoolExecutor | None = None
        self._process = 0

    def has(self, key: bytes) -> bool:
        """Whether a task of this loop makes the entry."""
        return key in self._loops.get(asyncio.get_running_loop(), ())

    async def join(self, key: bytes, fly: Callable[[], Coroutine[Any, Any, T]], wait: float) -> asyncio.Task[T] | None:
        """Joins the flight of a key, or begins one, and waits for its end. Cancelling a waiting task doesn't end
        the flight. Returns None if another task's flight takes longer than `wait`.
        """
        loop = asyncio.get_running_loop()
        flights = self._loops.setdefault(loop, {})
        deadline = loop.time() + wait
        while True:
            task = flights.get(key)
            if task is None or task.done():
                task = flights[key] = loop.create_task(fly())
                task.add_done_callback(functools.partial(_landed, flights, key))
                await asyncio.wait([task])
                return task
            done, _ = await asyncio.wait([task], timeout=max(deadline - loop.time(), 0))
            if not done:
                return None
            # If the flight was cancelled from within, one of the waiting tasks begins the next.
            if not task.cancelled():
                return task

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `work` in a thread of the loop's own pool: it waits at most for storage."""
        return await asyncio.to_thread(work, *args, **kwargs)

    async def wait(self, work: Callable[..., T], *arguments: Any) -> T:
        """Runs `work`, which may wait for other processes. Its last argument is a function that tells whether
        the result is still wanted. When the task is cancelled, it isn't, and the result is dropped.
        """
        # A forked child doesn't inherit threads.
        if self._threads is None or self._process != os.getpid():
            self._threads, self._process = ThreadPoolExecutor(_WAITING_AT_ONCE, "eyewall"), os.getpid()
        wanted = [True]
        waiting = functools.partial(work, *arguments, lambda: bool(wanted))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, waiting)
        finally:
            wanted.clear()


def _landed(flights: dict[bytes, asyncio.Task[Any]], key: bytes, task: asyncio.Task[Any]) -> None:
    if flights.get(key) is task:
        del flights[key]
    # All waiting tasks have seen the exception. Read it here, or asyncio reports it as never retrieved.
    if not task.cancelled():
        task.exception()
