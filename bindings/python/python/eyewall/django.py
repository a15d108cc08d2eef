"""Django's cache in a volume.

    CACHES = {
        "default": {
            "BACKEND": "eyewall.django.EyewallCache",
            "LOCATION": "/var/cache/eyewall/django",
            "OPTIONS": {"size": "256M"},
        }
    }

OPTIONS are those of `eyewall.Cache`. As in Django's other backends, the default of `serializer` is "pickle", so the backend
raises an error if other users may write the volume. MAX_ENTRIES and CULL_FREQUENCY have no effect: the size is the cap.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache

from ._cache import Cache
from ._errors import EntryTooLargeError, NotStoredWarning, RetryError
from ._volumes import volume

_NOT_OURS = ("MAX_ENTRIES", "CULL_FREQUENCY")


class EyewallCache(BaseCache):  # type: ignore[misc]
    """A cache backend. If a value can't be stored, it removes the former value and warns, and raises nothing."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        given = params.get("OPTIONS") or {}
        options = {name: value for name, value in given.items() if name.upper() not in _NOT_OURS}
        options.setdefault("serializer", "pickle")
        # Each thread has a backend object; all share one volume.
        self._cache: Cache = volume(location, options)

    @property
    def volume(self) -> Cache:
        """The volume, for operations that Django's interface lacks: tags, purges, statistics. `make_key` gives
        its keys.
        """
        return self._cache

    def _ttl(self, timeout: Any) -> float | None:
        """Seconds; 0 means that it expires at once."""
        if timeout is DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        if isinstance(timeout, timedelta):
            timeout = timeout.total_seconds()
        return None if timeout is None else max(float(timeout), 0.0)

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        key, ttl = self.make_and_validate_key(key, version=version), self._ttl(timeout)
        if ttl == 0:
            return key not in self._cache
        try:
            return self._cache.add(key, value, ttl=ttl) is not None
        except (EntryTooLargeError, RetryError) as error:
            return self._refused(error)

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        return self._cache.get(self.make_and_validate_key(key, version=version), default)

    async def aget(self, key: str, default: Any = None, version: int | None = None) -> Any:
        return await self._cache.aget(self.make_and_validate_key(key, version=version), default)

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        key, ttl = self.make_and_validate_key(key, version=version), self._ttl(timeout)
        if ttl == 0:
            self._cache.remove(key)
            return
        try:
            self._cache.put(key, value, ttl=ttl)
        except (EntryTooLargeError, RetryError) as error:
            # Readers would otherwise get the old value.
            self._cache.remove(key)
            self._refused(error)

    def touch(self, key: str, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        key, ttl = self.make_and_validate_key(key, version=version), self._ttl(timeout)
        return self._cache.remove(key) if ttl == 0 else self._cache.touch(key, ttl)

    def delete(self, key: str, version: int | None = None) -> bool:
        return self._cache.remove(self.make_and_validate_key(key, version=version))

    def has_key(self, key: str, version: int | None = None) -> bool:
        return self.make_and_validate_key(key, version=version) in self._cache

    def get_many(self, keys: Iterable[str], version: int | None = None) -> dict[str, Any]:
        wanted = {self.make_and_validate_key(key, version=version): key for key in keys}
        return {wanted[key]: value for key, value in self._cache.get_many(wanted).items()}  # type: ignore[index]

    def get_or_set(self, key: str, default: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> Any:
        """Calls a callable once over all processes that ask for the key."""
        ttl = self._ttl(timeout)
        if ttl == 0 or not callable(default):
            return super().get_or_set(key, default, timeout=timeout, version=version)
        return self._cache.get_or_fill(self.make_and_validate_key(key, version=version), default, ttl=ttl)

    async def aget_or_set(self, key: str, default: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> Any:
        """As `get_or_set`, without blocking the event loop. As in Django, the callable must not be a coroutine
        function.
        """
        ttl = self._ttl(timeout)
        if ttl == 0 or not callable(default):
            return await super().aget_or_set(key, default, timeout=timeout, version=version)

        async def make() -> Any:
            return default()

        return await self._cache.aget_or_fill(self.make_and_validate_key(key, version=version), make, ttl=ttl)

    async def aincr(self, key: str, delta: int = 1, version: int | None = None) -> Any:
        """As `incr`. It runs on the event loop, since it takes no longer than a look-up and a put."""
        return self.incr(key, delta, version)

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> Any:
        """Atomic over all processes. The entry keeps its expiry time."""
        key = self.make_and_validate_key(key, version=version)
        while True:
            entry = self._cache.lookup(key)
            if entry is None or entry.state != "fresh":
                raise ValueError(f"Key '{key}' not found")
            value = entry.value + delta
            if self._cache.replace(key, entry.serial, value, ttl=entry.ttl_left, tags=entry.tags) is not None:
                return value

    def clear(self) -> None:
        """Removes all entries of the volume, including those of other programs: give Django its own volume, or
        purge prefixes.
        """
        self._cache.purge_all()

    def _refused(self, error: Exception) -> bool:
        warnings.warn(f"a value is not stored: {error}", NotStoredWarning, stacklevel=3)
        return False
