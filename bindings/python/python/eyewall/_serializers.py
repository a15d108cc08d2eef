"""How values that have no form of their own become bytes.

`bytes`, `str`, `int`, `float`, `bool` and `None` are stored as what they are, whatever the serializer. It is for the rest. Each
kind of value has a byte of its own beside the value (`src/value.rs`), so that a cache knows what it reads: JSON and msgpack
are always read; pickle only where it was chosen, since whoever can write a pickle can run code in its reader.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._errors import SerializerError

_PHP, _IGBINARY, _JSON, _PICKLE, _MSGPACK, _OWN = range(0xF8, 0xFE)
_NAMES = {_PHP: "PHP's serialize", _IGBINARY: "igbinary", _PICKLE: "pickle", _MSGPACK: "msgpack", _OWN: "an application's own serializer"}


@dataclass(frozen=True)
class Serializer:
    """A pair of functions: `dumps` gives bytes, `loads` makes the value of them. All that share the volume have to use the same."""

    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]


@dataclass(frozen=True)
class Chosen:
    """What a cache uses."""

    kind: int
    dumps: Callable[[Any], bytes] | None
    loads: Callable[[bytes], Any] | None

    @property
    def runs_code(self) -> bool:
        """Whether reading runs what writers want."""
        return self.kind == _PICKLE


def _to_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _to_pickle(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _msgpack() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    try:
        import msgpack
    except ImportError:
        raise SerializerError("the value is one of msgpack, and that module isn't installed; pip install msgpack") from None
    return msgpack.packb, msgpack.unpackb


def chosen(serializer: str | Serializer | None) -> Chosen:
    """What a cache's option means."""
    match serializer:
        case None:
            return Chosen(0, None, None)
        case "json":
            return Chosen(_JSON, _to_json, json.loads)
        case "pickle":
            return Chosen(_PICKLE, _to_pickle, pickle.loads)
        case "msgpack":
            return Chosen(_MSGPACK, *_msgpack())
        case Serializer():
            return Chosen(_OWN, serializer.dumps, serializer.loads)
    raise ValueError(f"serializer is {serializer!r}; it may be None, 'json', 'msgpack', 'pickle' or an eyewall.Serializer")


def loads_other(kind: int, data: bytes) -> Any:
    """The value of a kind that isn't the cache's own."""
    if kind == _JSON:
        return json.loads(data)
    if kind == _MSGPACK:
        return _msgpack()[1](data)
    if kind == _PICKLE:
        raise SerializerError("the value is a pickle; open the cache with serializer='pickle' if you trust all who may write it")
    raise SerializerError(f"the value is one of {_NAMES[kind]}, which isn't read here; get_view gives its bytes")
