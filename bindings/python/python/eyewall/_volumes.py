"""The volumes that frameworks open by their settings. A process opens each volume once, for all threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from ._cache import Cache

_lock = threading.Lock()
_open: dict[str, tuple[dict[str, Any], Cache]] = {}


def volume(path: str | os.PathLike[str], options: Mapping[str, Any]) -> Cache:
    """Returns the cache at a path, and opens it if necessary. Raises ValueError if it was opened with other options."""
    name = os.path.abspath(path)
    with _lock:
        known = _open.get(name)
        if known is not None and not known[1].closed:
            if known[0] != dict(options):
                raise ValueError(f"{name} is open in this process with the options {known[0]}; give the same options, or another path")
            return known[1]
        opened = Cache(name, **options)
        _open[name] = (dict(options), opened)
        return opened


def _forget_lock() -> None:
    """Replaces the lock in a forked child, since another thread may have held it."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)
