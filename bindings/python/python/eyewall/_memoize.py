"""Caches results of functions by their arguments."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
TagsOf = str | Iterable[str] | Callable[..., str | Iterable[str]] | None

# Longer keys are replaced by their hash.
_KEY_BYTES_MAX = 250
_HASH_BYTES = 20


class Results(Protocol):
    """The store of the results: a `Cache`."""

    @property
    def get_or_fill(self) -> Callable[..., Any]: ...

    @property
    def aget_or_fill(self) -> Callable[..., Any]: ...

    def remove(self, key: str) -> bool: ...

    def purge_tag(self, tag: str, *, soft: bool = False) -> None: ...


def _encoded(value: object) -> str:
    """Text that is the same in all processes for equal arguments of the same types, and differs for all others."""
    if value is None or type(value) in (bool, int, float, str, bytes):
        return repr(value)
    if type(value) in (tuple, list):
        inner = ",".join(map(_encoded, value))  # type: ignore[call-overload]
        return f"({inner},)" if type(value) is tuple else f"[{inner}]"
    if type(value) is dict:
        return "{" + ",".join(sorted(f"{_encoded(key)}:{_encoded(item)}" for key, item in value.items())) + "}"
    raise TypeError(
        f"an argument of type {type(value).__name__} can't be part of a key that is the same in all processes; "
        "give memoize a key=function of the arguments"
    )


class Memoized(Generic[P, R]):
    """A function whose results are cached."""

    def __init__(self, how: Memoize, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self._how = how
        self.name = how.name or f"{function.__module__}.{function.__qualname__}"
        self._tag = _short(f"memoize:{self.name}")
        self._is_async = inspect.iscoroutinefunction(function)
        if self._is_async and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        how, key = self._how, self.key(*args, **kwargs)
        options: dict[str, Any] = {"ttl": how.ttl, "stale": how.stale, "tags": self._tags(args, kwargs), "wait": how.wait}
        make = functools.partial(self.__wrapped__, *args, **kwargs)
        fill: Callable[..., Any] = how.cache.aget_or_fill if self._is_async else how.cache.get_or_fill
        return fill(key, make, **options)  # type: ignore[no-any-return]

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """For a method, the instance is the first argument, as of any function; `forget` and `key` need it, too."""
        return self if instance is None else types.MethodType(self, instance)

    def key(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Returns the key of the result for these arguments."""
        if self._how.key is not None:
            told = self._how.key(*args, **kwargs)
            parts = told if isinstance(told, str) else told.hex()
        else:
            named = "".join(f",{name}={_encoded(value)}" for name, value in sorted(kwargs.items()))
            parts = ",".join(map(_encoded, args)) + named
        return _short(f"memoize:{self.name}({parts})")

    def forget(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Removes the result for these arguments. Returns False if there was none."""
        return self._how.cache.remove(self.key(*args, **kwargs))

    def purge(self, *, soft: bool = False) -> None:
        """Purges the results of all arguments."""
        self._how.cache.purge_tag(self._tag, soft=soft)

    def _tags(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        tags = self._how.tag(*args, **kwargs) if callable(self._how.tag) else self._how.tag
        return [self._tag, *([tags] if isinstance(tags, str) else tags or ())]


class Memoize:
    """The decorator that `Cache.memoize` returns."""

    def __init__(
        self,
        cache: Results,
        ttl: float | timedelta | None,
        stale: float | timedelta | None,
        tag: TagsOf,
        key: Callable[..., str | bytes] | None,
        name: str | None,
        wait: float | timedelta,
    ) -> None:
        self.cache, self.ttl, self.stale, self.key, self.name, self.wait = cache, ttl, stale, key, name, wait
        self.tag = tag if tag is None or isinstance(tag, str) or callable(tag) else tuple(tag)

    def __call__(self, function: Callable[P, R]) -> Memoized[P, R]:
        return Memoized(self, function)


def _short(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= _KEY_BYTES_MAX:
        return text
    return f"{text[:40].encode('ascii', 'replace').decode()}#{hashlib.blake2b(data, digest_size=_HASH_BYTES).hexdigest()}"
