"""The Rust module (src/)."""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, final

_Key = str | bytes
_Seconds = float | timedelta
_Tags = str | Iterable[str]
_K = TypeVar("_K", bound=_Key)
_T = TypeVar("_T", covariant=True)

__version__: str

class Cache:
    def __new__(
        cls,
        path: str | os.PathLike[str] | None,
        options: dict[str, Any],
        *,
        kind: int,
        dumps: Callable[[Any], bytes] | None,
        loads: Callable[[bytes], Any] | None,
        loads_other: Callable[[int, bytes], Any],
    ) -> Self: ...
    def close(self) -> None:
        """Closes the cache. The last process that leaves a volume writes it to storage. Views, claims and
        writers stay usable.
        """
    @property
    def closed(self) -> bool: ...
    def get(self, key: _Key, default: Any = None) -> Any:
        """Returns a copy of the value, or `default` if there is none. Keeps the interpreter's lock, since a
        look-up takes less than a microsecond.
        """
    def __getitem__(self, key: _Key, /) -> Any: ...
    def __setitem__(self, key: _Key, value: Any, /) -> None: ...
    def __delitem__(self, key: _Key, /) -> None: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def get_many(self, keys: Iterable[_K], /) -> dict[_K, Any]:
        """Returns the values of those keys that have one. Faster than one call per key."""
    def get_view(self, key: _Key) -> memoryview | None:
        """Returns a read-only view of a value's bytes, without a copy; None if there is none.

        The bytes can't change or be evicted while a view of them exists, so hold a view only while you read.
        A forked child must not read its parent's views: a new view of them raises `BufferError` there.
        """
    def lookup(self, key: _Key) -> Entry | None:
        """Returns an entry in any state: fresh, stale or negative; None if there is none."""
    def put(
        self,
        key: _Key,
        value: Any,
        *,
        ttl: _Seconds | None = None,
        stale: _Seconds | None = None,
        tags: _Tags | None = None,
        metadata: bytes | None = None,
        begun_in: Epoch | None = None,
    ) -> int:
        """Stores a value and returns its serial. It is valid for `ttl` seconds (None: until it is evicted), and
        may be used as a stale one for `stale` seconds after that.
        """
    def add(
        self,
        key: _Key,
        value: Any,
        *,
        ttl: _Seconds | None = None,
        stale: _Seconds | None = None,
        tags: _Tags | None = None,
        metadata: bytes | None = None,
        begun_in: Epoch | None = None,
    ) -> int | None:
        """Stores a value if there is no valid entry. Returns its serial, or None if there is an entry."""
    def replace(
        self,
        key: _Key,
        serial: int,
        value: Any,
        *,
        ttl: _Seconds | None = None,
        stale: _Seconds | None = None,
        tags: _Tags | None = None,
        metadata: bytes | None = None,
        begun_in: Epoch | None = None,
    ) -> int | None:
        """Stores a value if the entry still has this serial. Returns the new serial, or None if the entry has
        another serial, has expired or is gone.
        """
    def put_negative(
        self, key: _Key, reason: int, *, ttl: _Seconds | None = None, tags: _Tags | None = None, begun_in: Epoch | None = None
    ) -> int:
        """Stores a negative entry with a reason code from 0 to 65535. `lookup` returns it; `get` misses. Returns
        its serial.
        """
    def remove(self, key: _Key, *, serial: int | None = None) -> bool:
        """Removes an entry; with `serial`, only if it has that serial. Returns whether it did."""
    def touch(
        self,
        key: _Key,
        ttl: _Seconds | None = None,
        *,
        stale: _Seconds | None = None,
        serial: int | None = None,
        begun_in: Epoch | None = None,
    ) -> bool:
        """Gives the entry a new time to live (None: until it is evicted). Returns False if there is no entry, or
        if it has another serial than `serial`.
        """
    def increment(
        self,
        key: _Key,
        by: int = 1,
        *,
        start: int = 0,
        min: int = ...,
        max: int = ...,
        ttl: _Seconds | None = None,
        tags: _Tags | None = None,
    ) -> int:
        """Adds to an integer, atomically over all processes and languages, and returns the sum. A missing
        counter begins at `start`.
        """
    def purge_tag(self, tag: str, *, soft: bool = False) -> None:
        """Purges all entries with this tag. A soft purge makes them stale."""
    def purge_prefix(self, prefix: _Key, *, soft: bool = False) -> None:
        """Purges all entries whose keys begin with this prefix."""
    def purge_all(self, *, soft: bool = False) -> None:
        """Purges all entries, in microseconds."""
    def clear(self) -> int:
        """Removes all entries, one by one, and returns how many."""
    def sweep(self) -> int:
        """Removes purged and expired entries, and returns how many. It is never necessary."""
    def sync(self) -> None:
        """Writes everything to storage, and waits for it."""
    def populate(self) -> None:
        """Maps every page now, so that later reads cause no page fault."""
    def is_resident(self, key: _Key) -> bool | None:
        """Whether the whole value is in memory, so that reading it needn't wait for storage; None if there is no
        entry.
        """
    def prefault(self, key: _Key) -> bool:
        """Reads the entry into memory. Returns False if there is none."""
    def claim(self, key: _Key) -> Claim:
        """Claims a key to read and change its entry. Only one claim of a key stands at a time, over all
        processes. Plain puts don't wait for it.
        """
    def _look(self, key: _Key, default: Any = None) -> Any: ...
    def _begin_fill(
        self, key: _Key, wait: _Seconds, use_stale: bool, is_wanted: Callable[[], bool] | None = None
    ) -> tuple[Literal["found", "negative", "ours"], Any]: ...
    def writer(
        self,
        key: _Key,
        *,
        length: int | None = None,
        ttl: _Seconds | None = None,
        stale: _Seconds | None = None,
        tags: _Tags | None = None,
        metadata: bytes | None = None,
        begun_in: Epoch | None = None,
    ) -> Writer:
        """Returns a writer for a value of bytes that comes piece by piece. Give its `length` if you know it."""
    def follow(self, key: _Key) -> Follower | None:
        """Returns a follower of the writer of a key, in any process, from the first byte on; None if nobody
        writes the key. The bytes come before their writer commits them: only at the end is the entry certain.
        """
    def now(self) -> Epoch:
        """Returns the present moment, for `begun_in`. Call it before you read the data of a value. A value that
        is stored with it counts as older than every purge since, so that those purges apply to it.
        """
    def __iter__(self) -> Walk[_Key]: ...
    def keys(self) -> Walk[_Key]:
        """Iterates over all keys, in no order: `str` if they are UTF-8, else `bytes`."""
    def values(self) -> Walk[Any]: ...
    def items(self) -> Walk[tuple[_Key, Any]]: ...
    def stats(self) -> dict[str, Any]:
        """Returns statistics of the volume, over all processes. Scans the whole index."""
    @property
    def path(self) -> Path | None: ...
    @property
    def size(self) -> int: ...
    @property
    def entry_bytes_max(self) -> int: ...
    @property
    def is_read_only(self) -> bool: ...
    @property
    def is_failed(self) -> bool:
        """Whether bytes of the volume were lost under its map (`survive_sigbus`)."""
    @property
    def storage_warning(self) -> str | None:
        """Why the file system doesn't guarantee the volume's size; None if it does."""

@final
class Claim:
    @property
    def key(self) -> bytes: ...
    @property
    def value(self) -> Any: ...
    @property
    def found(self) -> bool: ...
    def put(
        self,
        value: Any,
        *,
        ttl: _Seconds | None = None,
        stale: _Seconds | None = None,
        tags: _Tags | None = None,
        metadata: bytes | None = None,
        begun_in: Epoch | None = None,
    ) -> int | None: ...
    def remove(self) -> bool: ...
    def end(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Entry:
    @property
    def state(self) -> Literal["fresh", "stale", "negative"]: ...
    @property
    def value(self) -> Any: ...
    @property
    def serial(self) -> int: ...
    @property
    def reason(self) -> int | None: ...
    @property
    def tags(self) -> list[str]: ...
    @property
    def metadata(self) -> bytes: ...
    @property
    def age(self) -> float: ...
    @property
    def ttl_left(self) -> float | None: ...

@final
class Epoch: ...

@final
class Flight:
    def store(
        self,
        value: Any,
        *,
        ttl: _Seconds | None = None,
        stale: _Seconds | None = None,
        tags: _Tags | None = None,
        metadata: bytes | None = None,
    ) -> int | None: ...
    def remember(self, reason: int, *, ttl: _Seconds | None = None, tags: _Tags | None = None) -> int | None: ...
    def end(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Follower(Iterator[bytes]):
    def read(self, size: int = 65536, *, wait: _Seconds = 30) -> bytes:
        """Returns the next bytes, up to `size`, or `b""` at the end of a stored entry. Waits for up to `wait`
        seconds; then it raises `BusyError`, and you may call it again. `InterruptedWriteError`: the entry
        will not come, and what you have read is part of none.
        """
    @property
    def metadata(self) -> bytes: ...
    @property
    def serial(self) -> int: ...
    def end(self) -> None:
        """Stops reading."""
    def __next__(self) -> bytes: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class View:
    @property
    def metadata(self) -> bytes: ...
    def check_intact(self) -> None: ...

@final
class Walk(Iterator[_T], Generic[_T]):
    def __next__(self) -> _T: ...

@final
class Writer:
    def write(self, piece: bytes | bytearray | memoryview) -> int: ...
    def commit(self) -> int | None: ...
    def abort(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        raised: type[BaseException] | None = None,
        value: BaseException | None = None,
        trace: TracebackType | None = None,
        /,
    ) -> None: ...
