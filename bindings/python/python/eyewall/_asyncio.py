"""What the tasks of an event loop wait for."""

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

# Threads that wait for other processes: apart from the loop's own, so that who waits doesn't keep others from storing.
_WAITING_AT_ONCE = 256


class Flights:
    """The flights of a cache's loops: one for each key."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bytes, asyncio.Task[Any]]] = WeakKeyDictionary()
        self._threads: ThreadPoolExecutor | None = None
        self._process = 0

    def has(self, key: bytes) -> bool:
        """Whether a task of this loop makes the entry."""
        return key in self._loops.get(asyncio.get_running_loop(), ())

    async def join(self, key: bytes, fly: Callable[[], Coroutine[Any, Any, T]], wait: float) -> asyncio.Task[T] | None:
        """The flight of a key, which has landed; it is begun if there is none. Who is cancelled doesn't end it. None: it is another's, and takes
        longer than `wait`."""
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
            # One that was cancelled from within isn't that of those that wait: one of them is the next.
            if not task.cancelled():
                return task

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Has something done in a thread of the loop's own: it waits for storage at most."""
        return await asyncio.to_thread(work, *args, **kwargs)

    async def wait(self, work: Callable[..., T], *arguments: Any) -> T:
        """Has something done that may wait for other processes, and asks its last argument now and then whether that is wanted still. Where its task
        is cancelled, it isn't, and what comes of it is dropped."""
        # Threads are not inherited by a forked child.
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
    # It has been told to all that wait; where nobody does, it isn't to be reported as forgotten.
    if not task.cancelled():
        task.exception()
