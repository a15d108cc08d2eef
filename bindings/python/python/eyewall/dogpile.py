"""A backend of dogpile.cache with a mutex over all processes. It stores the bytes that its region makes of values.

    region = make_region().configure(
        "eyewall", expiration_time=3600, arguments={"path": "/var/cache/eyewall/region", "size": "256M"}
    )

The arguments are those of `eyewall.Cache` and two more. `ttl`: an entry expires after so many seconds, whatever the region's
expiration time. `distributed_lock` (default true): whether one process makes a value for all, or one thread of each process.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from dogpile.cache.api import NO_VALUE, BytesBackend, CacheMutex

from ._cache import Cache
from ._errors import BusyError, EntryTooLargeError, NotStoredWarning, RetryError
from ._eyewall import Flight
from ._volumes import volume

# No key of a region begins so, since those are text.
_MUTEX = b"\0mutex\0"
_LONG_SECONDS = 3600.0


class Mutex(CacheMutex):
    """A lock over all processes: the flight of an entry that nobody ever stores. It ends with the process that holds
    it.
    """

    def __init__(self, cache: Cache, key: str) -> None:
        self._cache, self._key = cache, _MUTEX + key.encode()
        self._flight: Flight | None = None

    def acquire(self, wait: bool = True) -> bool:
        while True:
            try:
                _, flight = self._cache._begin_fill(self._key, _LONG_SECONDS if wait else 0, False)
            except BusyError:
                if wait:
                    continue
                return False
            self._flight = flight
            return True

    def release(self) -> None:
        # Threads share this object. As soon as the flight ends, the next thread owns it: don't touch it
        # after that.
        flight, self._flight = self._flight, None
        if flight is not None:
            flight.end()

    def locked(self) -> bool:
        if self._flight is not None:
            return True
        is_free = self.acquire(wait=False)
        self.release()
        return not is_free


class EyewallBackend(BytesBackend):
    """The backend `eyewall`."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        options = dict(arguments)
        self._is_locking = options.pop("distributed_lock", True)
        self._ttl = options.pop("ttl", None)
        self.volume: Cache = volume(options.pop("path"), options)

    def get_mutex(self, key: str) -> Mutex | None:
        return Mutex(self.volume, key) if self._is_locking else None

    def get_serialized(self, key: str) -> Any:
        return self.volume.get(key, NO_VALUE)

    def get_serialized_multi(self, keys: Iterable[str]) -> list[Any]:
        wanted = list(keys)
        found = self.volume.get_many(wanted)
        return [found.get(key, NO_VALUE) for key in wanted]

    def set_serialized(self, key: str, value: bytes) -> None:
        """If a value can't be stored, this removes the former value and warns; the region still returns the new
        one.
        """
        try:
            self.volume.put(key, value, ttl=self._ttl)
        except (EntryTooLargeError, RetryError) as error:
            # Readers would otherwise get the old value.
            self.volume.remove(key)
            warnings.warn(f"a value is not stored: {error}", NotStoredWarning, stacklevel=2)

    def set_serialized_multi(self, mapping: Mapping[str, bytes]) -> None:
        for key, value in mapping.items():
            self.set_serialized(key, value)

    def delete(self, key: str) -> None:
        self.volume.remove(key)

    def delete_multi(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.volume.remove(key)
