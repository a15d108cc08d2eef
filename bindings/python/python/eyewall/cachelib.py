"""A volume with the interface of cachelib, for Flask-Caching, Flask-Session and other users of cachelib.

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
    """A cache of cachelib. Its options are those of `eyewall.Cache`. The default of `serializer` is "pickle", so the
    cache raises an error if other users may write the volume. A timeout of 0 means forever. If a value can't be
    stored, `set` removes the former value and returns False.
    """

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
        """Seconds; None: forever. A negative timeout gives 0, which expires at once."""
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
        """Removes all entries with the prefix; without a prefix, all entries of the volume."""
        self.volume.purge_prefix(self.key_prefix)
        return True

    def inc(self, key: str, delta: int = 1) -> int | None:
        """Atomic over all processes. A missing counter begins at 0."""
        return self.volume.increment(self.key_prefix + key, delta, ttl=self._ttl(None))

    def dec(self, key: str, delta: int = 1) -> int | None:
        return self.inc(key, -delta)
