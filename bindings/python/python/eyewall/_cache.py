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
    """What a fill function returns if there is nothing: a reason code, and a time to live (None: that of a value).
    The negative entry gets the tags that a value would have.
    """

    __slots__ = ("reason", "ttl")

    def __init__(self, reason: int = 0, ttl: Seconds | None = None) -> None:
        self.reason, self.ttl = reason, ttl


def _bytes_of(size: int | str | None) -> int | None:
    """Parses a number of bytes, possibly with a unit: 64M."""
    if not isinstance(size, str):
        if size is not None and size < 0:
            raise ValueError(f"{size} is not a size; give a number of bytes from 0 on")
        return size
    number, unit = (size[:-1], _UNITS.get(size[-1:].upper())) if size[-1:].isalpha() else (size, 1)
    if unit is None or not number.isdecimal():
        raise ValueError(f"{size!r} is not a size; give a number of bytes, or one with a unit K, M, G or T, such as '64M'")
    return int(number) * unit


class Cache(_eyewall.Cache):
    """A volume: a mapping of keys to values with a hard cap in bytes. All processes that open its path share it.

    Without a path, the volume is anonymous: this process shares it with the processes that it forks.

    Keys are `str`, stored as UTF-8, or `bytes`; iteration returns UTF-8 keys as `str`. For values, see
    `serializer`. The cache may evict any entry at any time, so a stored key may be gone.
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
        fleet: bool = False,
        unclean: Literal["keep", "clear"] = "keep",
        serializer: Literal["json", "msgpack", "pickle"] | _serializers.Serializer | None = None,
        trust_writers: bool = False,
    ) -> Self:
        """Opens the volume at `path`, or creates it.

        These options describe a new volume. Opening an existing volume with others is an error.

        - `size` (64M): its size in bytes, a hard cap.
        - `entry_bytes_max` (a sixteenth of the size, at most 4M): the largest entry.
        - `entry_size_hint` (1K): the size of a typical entry.
        - `mode` (0o600) and `group`: who may use it.

        These apply to this process:

        - `lock_deadline` (1): seconds that a call waits for another process.
        - `tier`, `tier_folder`: shared memory for copies of hot entries, and its folder.
        - `survive_sigbus`: raise FailedError, instead of SIGBUS, if the file is truncated.
        - `put_aside_broken`: rename a broken file to `NAME.broken-SECONDS` and create a new volume, instead
          of raising CorruptError.
        - `verify_hits`: verify the checksum of each value before returning it; a damaged value is removed,
          and is a miss.
        - `fleet`: purges wait beside the volume, in `NAME.purges`, until `eyewall fleet agent` or `eyewall serve`
          passes them on to other machines.
        - `serializer`: for values other than bytes, str, int, float, bool and None, which are refused without
          it. "pickle" lets everyone who can write the volume run code in this process. It is refused if other
          users can, unless `trust_writers` is true.
        """
        if unclean not in ("keep", "clear"):
            raise ValueError(f"unclean is {unclean!r}; give 'keep' or 'clear'")
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
            "fleet": fleet,
            "clear_unclean": unclean == "clear",
        }
        self = super().__new__(
            cls, path, options, kind=codec.kind, dumps=codec.dumps, loads=codec.loads, loads_other=_serializers.loads_other
        )
        if codec.runs_code and path is not None and not trust_writers:
            self._check_writers(path)
        self._path = None if path is None else os.path.abspath(path)
        # Options for another process. The volume has its shape by then.
        self._again = {
            "lock_deadline": lock_deadline, "tier": tier, "tier_folder": tier_folder, "read_only": read_only,
            "survive_sigbus": survive_sigbus, "verify_hits": verify_hits, "fleet": fleet, "serializer": serializer, "trust_writers": trust_writers, "must_exist": True,
        }  # fmt: skip
        return self

    @functools.cached_property
    def _flights(self) -> Flights:
        # Programs without an event loop needn't load asyncio.
        from ._asyncio import Flights

        return Flights()

    def _check_writers(self, path: str | os.PathLike[str]) -> None:
        """Refuses a volume that other users, except root, can write or replace."""
        # Both the folder of a link and the folder of its target count.
        folders = {os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))}
        for what in (os.fspath(path), *folders):
            found = os.stat(what)
            # In a sticky folder, only the owner of a file may remove it.
            is_sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
            is_shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky
            if is_shared or found.st_uid not in (0, os.geteuid()):
                self.close()
                raise UntrustedError(
                    f"other users may write {what}, so their pickles could run code in this process; use serializer='json', "
                    "remove their permission, or give trust_writers=True"
                )

    def __reduce__(self) -> tuple[Callable[..., Cache], tuple[Any, ...]]:
        """Pickles a cache as its path: the other process opens the volume itself."""
        if self._path is None:
            raise TypeError("only forked processes can use a volume without a path; open one with a path")
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
        """Stores several entries, one after the other. The first failure ends it."""
        tags = tags if tags is None or isinstance(tags, str) else tuple(tags)
        for key, value in entries.items() if isinstance(entries, Mapping) else entries:
            self.put(key, value, ttl=ttl, stale=stale, tags=tags, begun_in=begun_in)

    update = put_many

    def setdefault(self, key: Key, default: Any = None, *, ttl: Seconds | None = None) -> Any:
        """Returns the value of a key. If there is none, stores and returns `default`."""
        while True:
            value = self.get(key, _MISSING)
            if value is not _MISSING:
                return value
            if self.add(key, default, ttl=ttl) is not None:
                return default

    def pop(self, key: Key, default: Any = _MISSING) -> Any:
        """Removes an entry and returns its value. If several callers try, one gets it. Raises KeyError if there
        is no entry and no default.
        """
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
        """Returns the value of a key. If there is none, one caller over all threads and processes calls
        `make()`, and the others wait.

        With `stale`, the others get the expired value for so many seconds meanwhile. A caller that has waited
        longer than `wait` calls `make` for itself. `make` may return a `Negative`: then, and for a negative
        entry, the result is `default`. If `make` raises, this call raises, and one of the waiting callers
        calls its own `make`. If the value can't be stored, this call warns and returns it.
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
        """Stores the result of `make`, and returns it."""
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
        """As `get`. If the entry isn't in memory, a thread waits for storage, so the event loop doesn't."""
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
        """As `get_or_fill`, with a coroutine function. For each key, one thread waits for other processes. Tasks
        of this event loop wait for each other without a thread; if `make` raises, all of them raise. A `make`
        that has begun runs to its end, even if its caller is cancelled.
        """
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
        """Returns a decorator that caches a function's results by its arguments, and makes each once over all
        processes.

        A coroutine function is awaited. `tag` is a tag, several tags, or a function of the arguments that
        returns them. The key consists of the function's name (or `name`) and its arguments. These may be
        None, bool, int, float, str, bytes, and tuples, lists and dicts of them. For other types, give `key`,
        a function of the arguments that returns a distinct key. Exceptions aren't cached. `f.purge()` purges
        all results, `f.forget(...)` removes one, and `f.key(...)` returns its key.
        """
        return _memoize.Memoize(self, ttl, stale, tag, key, name, wait)


def _opened(cls: type[Cache], path: str, options: dict[str, Any]) -> Cache:
    return cls(path, **options)
