"""The class of a volume."""

from __future__ import annotations

import functools
import grp
import os
import stat
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from . import _eyewall, _memoize, _serializers
from ._errors import BusyError, Error, NotStoredWarning, SerializerError, UntrustedError

if TYPE_CHECKING:
    from ._asyncio import Flights

Key = str | bytes
Seconds = float | timedelta
T = TypeVar("T")

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MISSING = object()


class Negative:
    """What a function that fills gives where there is nothing: a number that says why, and for how long nobody asks again (None: for as long
    as a value would be kept). It has the tags that a value would have."""

    __slots__ = ("reason", "ttl")

    def __init__(self, reason: int = 0, ttl: Seconds | None = None) -> None:
        self.reason, self.ttl = reason, ttl


def _bytes_of(size: int | str | None) -> int | None:
    """A number of bytes, or one with a unit: 64M."""
    if not isinstance(size, str):
        if size is not None and size < 0:
            raise ValueError(f"{size} is no size; a number of bytes is at least 0")
        return size
    number, unit = (size[:-1], _UNITS.get(size[-1:].upper())) if size[-1:].isalpha() else (size, 1)
    if unit is None or not number.isdecimal():
        raise ValueError(f"{size!r} is no size; write a number of bytes, or one with K, M, G or T behind it")
    return int(number) * unit


class Cache(_eyewall.Cache):
    """A volume that all processes which open its path share: a mapping of keys to values, with a hard cap in bytes.

    Without a path it is one without a name, which this process shares with those that it forks.

    Keys are `str`, as UTF-8, or `bytes`; a walk gives those that are UTF-8 as `str`. Values: see `serializer`. Anything may be
    evicted at any time, so that a key that was stored needn't be there.
    """

    _path: str | None
    _again: dict[str, Any]

    def __new__(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        size: int | str | None = None,
        entry_bytes_max: int | str | None = None,
        entry_size_hint: int | str | None = None,
        mode: int | None = None,
        group: int | str | None = None,
        lock_deadline: Seconds | None = None,
        tier: int | str | None = None,
        tier_folder: str | os.PathLike[str] | None = None,
        must_exist: bool = False,
        read_only: bool = False,
        secure_erase: bool = False,
        survive_sigbus: bool = False,
        put_aside_broken: bool = False,
        verify_hits: bool = False,
        unclean: Literal["keep", "clear"] = "keep",
        serializer: Literal["json", "msgpack", "pickle"] | _serializers.Serializer | None = None,
        trust_writers: bool = False,
    ) -> Self:
        """Opens the volume at `path`, or creates it.

        `size` (64M), `entry_bytes_max` (a sixteenth of the size, at most 4M), `entry_size_hint` (1K), `mode` (0o600) and `group`
        are those of a new volume: bytes in all, of the largest entry, of a typical one; who may use it. To ask for others
        than a volume has is an error. `lock_deadline` (1): seconds that a call waits for another process. `tier`, `tier_folder`:
        shared memory for copies of what is asked for often. `survive_sigbus`: FailedError instead of SIGBUS if the file is truncated.
        `put_aside_broken`: a broken file is renamed to `NAME.broken-SECONDS` and a new volume takes its place, instead of CorruptError.
        `verify_hits`: each value is held against its checksum before it is returned; a wrong one is dropped, and is a miss.

        `serializer` is for values other than bytes, str, int, float, bool and None: None refuses them. "pickle" runs code of
        whoever may write the volume, and is refused where others may, unless `trust_writers` says that they are trusted.
        """
        if unclean not in ("keep", "clear"):
            raise ValueError(f"unclean is {unclean!r}; it may be 'keep' or 'clear'")
        codec = _serializers.chosen(serializer)
        options = {
            "size": _bytes_of(size),
            "entry_size_hint": _bytes_of(entry_size_hint),
            "entry_bytes_max": _bytes_of(entry_bytes_max),
            "mode": mode,
            "group": grp.getgrnam(group).gr_gid if isinstance(group, str) else group,
            "lock_deadline": lock_deadline,
            "tier": _bytes_of(tier),
            "tier_folder": tier_folder,
            "must_exist": must_exist,
            "read_only": read_only,
            "secure_erase": secure_erase,
            "survive_sigbus": survive_sigbus,
            "put_aside_broken": put_aside_broken,
            "verify_hits": verify_hits,
            "clear_unclean": unclean == "clear",
        }
        self = super().__new__(
            cls, path, options, kind=codec.kind, dumps=codec.dumps, loads=codec.loads, loads_other=_serializers.loads_other
        )
        if codec.runs_code and path is not None and not trust_writers:
            self._check_writers(path)
        self._path = None if path is None else os.path.abspath(path)
        # For another process: the shape is the volume's by then.
        self._again = {
            "lock_deadline": lock_deadline, "tier": tier, "tier_folder": tier_folder, "read_only": read_only,
            "survive_sigbus": survive_sigbus, "verify_hits": verify_hits, "serializer": serializer, "trust_writers": trust_writers, "must_exist": True,
        }  # fmt: skip
        return self

    @functools.cached_property
    def _flights(self) -> Flights:
        # Who has no loop needn't pay for loading what loops take.
        from ._asyncio import Flights

        return Flights()

    def _check_writers(self, path: str | os.PathLike[str]) -> None:
        """Refuses a volume that others than this user and root may write, or put another in the place of."""
        # A link's folder counts, and that of what it names.
        folders = {os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))}
        for what in (os.fspath(path), *folders):
            found = os.stat(what)
            # In a sticky folder, only the owner of a file may remove it.
            is_sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
            is_shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky
            if is_shared or found.st_uid not in (0, os.geteuid()):
                self.close()
                raise UntrustedError(
                    f"others may write {what}, and a pickle of theirs could run code here; use serializer='json', take that right "
                    "from them, or say trust_writers=True"
                )

    def __reduce__(self) -> tuple[Callable[..., Cache], tuple[Any, ...]]:
        """A cache goes to another process as its path: it opens the volume there."""
        if self._path is None:
            raise TypeError("a volume without a path can't go to a process that wasn't forked; open one with a path")
        return _opened, (type(self), self._path, self._again)

    def __repr__(self) -> str:
        return f"<eyewall.Cache {'closed' if self.closed else self.path or 'without a name'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def put_many(
        self,
        entries: Mapping[str, Any] | Mapping[bytes, Any] | Mapping[Key, Any] | Iterable[tuple[Key, Any]],
        *,
        ttl: Seconds | None = None,
        stale: Seconds | None = None,
        tags: str | Iterable[str] | None = None,
        begun_in: _eyewall.Epoch | None = None,
    ) -> None:
        """Stores several entries, one after the other; what fails ends it."""
        tags = tags if tags is None or isinstance(tags, str) else tuple(tags)
        for key, value in entries.items() if isinstance(entries, Mapping) else entries:
            self.put(key, value, ttl=ttl, stale=stale, tags=tags, begun_in=begun_in)

    update = put_many

    def setdefault(self, key: Key, default: Any = None, *, ttl: Seconds | None = None) -> Any:
        """The value of a key; where there is none, `default`, which is stored."""
        while True:
            value = self.get(key, _MISSING)
            if value is not _MISSING:
                return value
            if self.add(key, default, ttl=ttl) is not None:
                return default

    def pop(self, key: Key, default: Any = _MISSING) -> Any:
        """Removes an entry, and gives its value: to one caller, where several try. Without a default, KeyError where there is none."""
        while True:
            entry = self.lookup(key)
            if entry is None or entry.state != "fresh":
                if default is _MISSING:
                    raise KeyError(key)
                return default
            if self.remove(key, serial=entry.serial):
                return entry.value

    def get_or_fill(
        self,
        key: Key,
        make: Callable[[], T | Negative],
        *,
        ttl: Seconds | None = None,
        stale: Seconds | None = None,
        tags: str | Iterable[str] | None = None,
        metadata: bytes | None = None,
        wait: Seconds = 30,
        default: Any = None,
    ) -> T:
        """The value of a key; where there is none, `make()` makes it, once over all threads and processes, while the others wait.

        With `stale`, one that is over may be had for so long meanwhile, without waiting. If whoever makes it takes longer than
        `wait`, this call makes it for itself. `make` may give a `Negative`: then, and where such an entry is, the answer is
        `default`. What it raises, this call does, and one of those that wait is the next to make it. A value that can't be stored
        is given all the same, with a warning.
        """
        try:
            state, found = self._begin_fill(key, wait, bool(stale))
        except BusyError:
            made = make()
            return default if isinstance(made, Negative) else made
        if state != "ours":
            return found if state == "found" else default  # type: ignore[no-any-return]
        with found:
            options = {"ttl": ttl, "stale": stale, "tags": tags, "metadata": metadata}
            return self._filled(found, make(), options, default)

    def _filled(self, flight: _eyewall.Flight, made: T | Negative, options: dict[str, Any], default: Any) -> T:
        """Stores what was made, and gives it."""
        try:
            if isinstance(made, Negative):
                ttl = options["ttl"] if made.ttl is None else made.ttl
                flight.remember(made.reason, ttl=ttl, tags=options["tags"])
                return default  # type: ignore[no-any-return]
            flight.store(made, **options)
        except SerializerError:
            raise
        except Error as error:
            warnings.warn(f"a value was made and is not stored: {error}", NotStoredWarning, stacklevel=3)
        return default if isinstance(made, Negative) else made

    fill = get_or_fill

    async def aget(self, key: Key, default: Any = None) -> Any:
        """As `get`; where the entry isn't in memory, a thread waits for storage, and not the loop."""
        await self._warmed(key)
        return self.get(key, default)

    async def _warmed(self, key: Key) -> None:
        if self.is_resident(key) is False:
            await self._flights.aside(self.prefault, key)

    async def aput(
        self,
        key: Key,
        value: Any,
        *,
        ttl: Seconds | None = None,
        stale: Seconds | None = None,
        tags: str | Iterable[str] | None = None,
        metadata: bytes | None = None,
        begun_in: _eyewall.Epoch | None = None,
    ) -> int:
        """As `put`, in a thread."""
        return await self._flights.aside(
            self.put, key, value, ttl=ttl, stale=stale, tags=tags, metadata=metadata, begun_in=begun_in
        )

    async def aget_or_fill(
        self,
        key: Key,
        make: Callable[[], Awaitable[T | Negative]],
        *,
        ttl: Seconds | None = None,
        stale: Seconds | None = None,
        tags: str | Iterable[str] | None = None,
        metadata: bytes | None = None,
        wait: Seconds = 30,
        default: Any = None,
    ) -> T:
        """As `get_or_fill`, by a coroutine function. A thread waits for other processes, one for each key; the tasks of this loop wait
        for one another without any, and what the one that makes it raises, all of them do. What was begun is brought to its end, even if
        who asked for it is cancelled."""
        await self._warmed(key)
        value = self._look(key, _MISSING)
        if value is not _MISSING:
            return value  # type: ignore[no-any-return]
        name = key.encode() if isinstance(key, str) else key
        if stale and self._flights.has(name):
            entry = self.lookup(key)
            if entry is not None and entry.state == "stale":
                return entry.value  # type: ignore[no-any-return]
        options = {"ttl": ttl, "stale": stale, "tags": tags, "metadata": metadata}

        async def fly() -> T:
            try:
                state, found = await self._flights.wait(self._begin_fill, key, wait, bool(stale))
            except BusyError:
                return await alone()
            if state != "ours":
                return found if state == "found" else default  # type: ignore[no-any-return]
            with found:
                made = await make()
                return await self._flights.aside(self._filled, found, made, options, default)

        async def alone() -> T:
            made = await make()
            return default if isinstance(made, Negative) else made

        seconds = wait.total_seconds() if isinstance(wait, timedelta) else wait
        task = await self._flights.join(name, fly, seconds)
        return task.result() if task is not None else await alone()

    def memoize(
        self,
        *,
        ttl: Seconds | None = None,
        stale: Seconds | None = None,
        tag: _memoize.TagsOf = None,
        key: Callable[..., str | bytes] | None = None,
        name: str | None = None,
        wait: Seconds = 30,
    ) -> _memoize.Memoize:
        """A decorator: the function's results are kept by its arguments, and made once over all processes.

        Of a coroutine function, it is awaited. `tag` is a tag, several, or a function of the arguments that gives them. The key is
        made of the function's name (or `name`) and its arguments, which may be None, bool, int, float, str, bytes, and
        tuples, lists and dicts of these; for others `key`, a function of the arguments, gives what tells calls apart.
        What the function raises isn't kept. `f.purge()` purges all its results, `f.forget(...)` one, `f.key(...)` is its key.
        """
        return _memoize.Memoize(self, ttl, stale, tag, key, name, wait)


def _opened(cls: type[Cache], path: str, options: dict[str, Any]) -> Cache:
    return cls(path, **options)
