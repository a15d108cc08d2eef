"""A volume by the interface of cachelib, for Flask-Caching, Flask-Session and others that take it.

    Cache(app, config={
        "CACHE_TYPE": "eyewall.cachelib.EyewallCache",
        "CACHE_ARGS": ["/var/cache/eyewall/flask"],
        "CACHE_OPTIONS": {"size": "256M"},
    })
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from cachelib import BaseCache

from ._cache import Cache
from ._errors import EntryTooLargeError, RetryError
from ._volumes import volume


class EyewallCache(BaseCache):
    """A cache of cachelib. Options are those of `eyewall.Cache`; `serializer` is "pickle" unless it says otherwise, and so refused where others
    may write the volume. A timeout of 0 is for ever. What can't be stored is False, and removes what was there."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        default_timeout: int | timedelta = 300,
        ignore_delete_many_errors: bool = True,
        *,
        key_prefix: str = "",
        **options: Any,
    ) -> None:
        super().__init__(default_timeout)
        self.ignore_delete_many_errors = ignore_delete_many_errors
        self.key_prefix = key_prefix
        self.volume: Cache = volume(path, {"serializer": "pickle", **options})

    def _ttl(self, timeout: int | timedelta | None) -> float | None:
        """Seconds, or None: for ever. Below 0: it is over at once."""
        chosen = self.default_timeout if timeout is None else timeout
        seconds = chosen.total_seconds() if isinstance(chosen, timedelta) else chosen
        return max(seconds, 0) if seconds else None

    def get(self, key: str) -> Any:
        return self.volume.get(self.key_prefix + key)

    def get_many(self, *keys: str) -> list[Any]:
        found = self.volume.get_many(self.key_prefix + key for key in keys)
        return [found.get(self.key_prefix + key) for key in keys]

    def set(self, key: str, value: Any, timeout: int | timedelta | None = None) -> bool:
        key = self.key_prefix + key
        try:
            return bool(self.volume.put(key, value, ttl=self._ttl(timeout)))
        except (EntryTooLargeError, RetryError):
            self.volume.remove(key)
            return False

    def add(self, key: str, value: Any, timeout: int | timedelta | None = None) -> bool:
        try:
            return self.volume.add(self.key_prefix + key, value, ttl=self._ttl(timeout)) is not None
        except (EntryTooLargeError, RetryError):
            return False

    def delete(self, key: str) -> bool:
        return self.volume.remove(self.key_prefix + key)

    def delete_many(self, *keys: str) -> list[Any]:
        return [key for key in keys if self.delete(key)]

    def has(self, key: str) -> bool:
        return self.key_prefix + key in self.volume

    def clear(self) -> bool:
        """Removes what has the prefix; without one, everything in the volume."""
        self.volume.purge_prefix(self.key_prefix)
        return True

    def inc(self, key: str, delta: int = 1) -> int | None:
        """In one step over all processes; an absent one begins at 0."""
        return self.volume.increment(self.key_prefix + key, delta, ttl=self._ttl(None))

    def dec(self, key: str, delta: int = 1) -> int | None:
        return self.inc(key, -delta)
