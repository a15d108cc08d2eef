"""Serializers of values.

`bytes`, `str`, `int`, `float`, `bool` and `None` need no serializer. Other types do. A byte beside each value names its kind
(`src/value.rs`). Every cache reads JSON and msgpack. Only a cache with the pickle serializer reads pickle, since a writer of
pickles can run code in their reader.
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
    """A pair of functions: `dumps` turns a value into bytes, `loads` turns bytes into the value. All programs that
    share a volume must use the same pair.
    """

    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]


@dataclass(frozen=True)
class Chosen:
    """The serializer of a cache."""

    kind: int
    dumps: Callable[[Any], bytes] | None
    loads: Callable[[bytes], Any] | None

    @property
    def runs_code(self) -> bool:
        """Whether a writer can run code in a reader."""
        return self.kind == _PICKLE


def _to_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _to_pickle(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _msgpack() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    try:
        import msgpack
    except ImportError:
        raise SerializerError("the value needs the module msgpack, which isn't installed; pip install msgpack") from None
    return msgpack.packb, msgpack.unpackb


def chosen(serializer: str | Serializer | None) -> Chosen:
    """Resolves the option `serializer`."""
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
    """Decodes a value of a kind that isn't the cache's own."""
    if kind == _JSON:
        return json.loads(data)
    if kind == _MSGPACK:
        return _msgpack()[1](data)
    if kind == _PICKLE:
        raise SerializerError("the value is a pickle; if you trust everyone who can write the volume, open it with serializer='pickle'")
    raise SerializerError(f"the value was stored by {_NAMES[kind]}, which this cache doesn't read; get_view returns its bytes")
