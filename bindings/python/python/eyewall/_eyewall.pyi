"""The module in Rust (src/)."""

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
        """Leaves the volume; the last process to leave writes it to storage. Views, claims and writers live on."""
    @property
    def closed(self) -> bool: ...
    def get(self, key: _Key, default: Any = None) -> Any:
        """The value of a key, copied; `default` where there is none. Keeps the interpreter's lock: it takes less than a microsecond."""
    def __getitem__(self, key: _Key, /) -> Any: ...
    def __setitem__(self, key: _Key, value: Any, /) -> None: ...
    def __delitem__(self, key: _Key, /) -> None: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def get_many(self, keys: Iterable[_K], /) -> dict[_K, Any]:
        """The values of those keys that have one. Faster than one by one."""
    def get_view(self, key: _Key) -> memoryview | None:
        """The bytes of a value where they lie, for reading only; None where there is none.

        They stay as they are, and can't be evicted, until the last view of them is gone: hold it for as long as you read. A
        forked child must not read what its parent holds: a new view of it there is refused by a `BufferError`.
        """
    def lookup(self, key: _Key) -> Entry | None:
        """All that is known about a key: fresh, stale, or negative; None: nothing."""
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
        """Stores a value for `ttl` seconds (None: until it is evicted), usable as a stale one for `stale` after that; its serial."""
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
        """Stores a value if there is none; its serial, or None: there is one."""
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
        """Stores a value if the entry still has this serial; None: it has another, has expired or is gone."""
    def put_negative(
        self, key: _Key, reason: int, *, ttl: _Seconds | None = None, tags: _Tags | None = None, begun_in: Epoch | None = None
    ) -> int:
        """Notes that there is nothing, and why: a number from 0 to 65535. `lookup` gives it, `get` misses."""
    def remove(self, key: _Key, *, serial: int | None = None) -> bool:
        """Removes an entry, of this serial only if one is given; False: there was none."""
    def touch(
        self,
        key: _Key,
        ttl: _Seconds | None = None,
        *,
        stale: _Seconds | None = None,
        serial: int | None = None,
        begun_in: Epoch | None = None,
    ) -> bool:
        """From now on the entry is valid for `ttl` (None: until it is evicted); False: there is none, or one of another `serial` than is given."""
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
        """Adds to an integer, in one step over all processes and languages; what it is then. An absent one begins at `start`."""
    def purge_tag(self, tag: str, *, soft: bool = False) -> None:
        """Purges all entries with this tag; softly: makes them stale."""
    def purge_prefix(self, prefix: _Key, *, soft: bool = False) -> None:
        """Purges all entries whose key begins so."""
    def purge_all(self, *, soft: bool = False) -> None:
        """Purges everything, in the time of a few stores."""
    def clear(self) -> int:
        """Removes all entries, one by one; how many."""
    def sweep(self) -> int:
        """Drops what is purged or over; how many. Nobody needs to call it."""
    def sync(self) -> None:
        """Brings everything to storage, and waits for it."""
    def populate(self) -> None:
        """Maps every page now, so that no later read faults."""
    def is_resident(self, key: _Key) -> bool | None:
        """Whether reading the value would find it in memory; None: there is none."""
    def prefault(self, key: _Key) -> bool:
        """Reads the entry into memory; False: there is none."""
    def claim(self, key: _Key) -> Claim:
        """Claims a key, to look at its entry and change it: one at a time over all processes. Plain puts don't wait for it."""
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
        """Begins to write a value of bytes piece by piece; `length` is its length if it is known."""
    def follow(self, key: _Key) -> Follower | None:
        """Reads what somebody is writing to a key, whatever process it is, from its first byte on; None: nobody is. Bytes come before their writer
        has vouched for them: until the end was reached they may come to nothing."""
    def now(self) -> Epoch:
        """This moment, for `begun_in`: what is stored with it counts as stored now, so that what is purged from now on purges it, too. To be asked
        for before whatever the value is made of is read."""
    def __iter__(self) -> Walk[_Key]: ...
    def keys(self) -> Walk[_Key]:
        """All keys, in no order: `str` where they are UTF-8, else `bytes`."""
    def values(self) -> Walk[Any]: ...
    def items(self) -> Walk[tuple[_Key, Any]]: ...
    def stats(self) -> dict[str, Any]:
        """Numbers about the volume, over all processes. Looks at the whole index."""
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
        """Why the volume's size is no promise on its file system, if it isn't."""

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
        """The next bytes, up to `size`; none (`b""`): that was all, and the entry was stored. Waits for them for up to `wait` seconds, and then
        raises `BusyError`, after which it may be called again. `InterruptedWriteError`: nothing will come of the entry, and what was read is part of none."""
    @property
    def metadata(self) -> bytes: ...
    @property
    def serial(self) -> int: ...
    def end(self) -> None:
        """Reads no further."""
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
