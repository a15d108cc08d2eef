#!/usr/bin/env python3
"""The Python actor: answers the questions on its standard input (bindings/cases/README.md)."""

from __future__ import annotations

import os
import signal
import string
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_to_bytes

import eyewall

Answer = tuple[str, ...] | tuple[str, bytes]

# The number of words before the options, which are name=value.
_WORDS = {"open": 2, "put": 2, "negative": 2, "add": 2, "touch": 1, "fill": 2, "begin": 1, "purge": 2}


_PLAIN = frozenset(string.ascii_letters + string.digits + "-_./")


class GivesUp(Exception):
    """A fill that makes nothing."""


class Actor:
    cache: eyewall.Cache
    claimed: eyewall.Claim
    writer: eyewall.Writer
    # The serial of the entry that this actor read last.
    serial = 0

    def open(self, path: bytes, size: bytes, fleet: str = "") -> Answer:
        self.cache = eyewall.Cache(os.fsdecode(path), size=int(size), fleet=fleet == "yes")
        return ("ok",)

    def put(self, key: bytes, value: bytes, **options: Any) -> Answer:
        self.cache.put(key, value, **options)
        return ("ok",)

    def negative(self, key: bytes, reason: bytes, **options: Any) -> Answer:
        self.cache.put_negative(key, int(reason), **options)
        return ("ok",)

    def get(self, key: bytes) -> Answer:
        value = self.cache.get(key)
        if value is None:
            return ("miss",)
        entry = self.cache.lookup(key)
        self.serial = entry.serial if entry else 0
        return ("value", value)

    def lookup(self, key: bytes) -> Answer:
        entry = self.cache.lookup(key)
        if entry is None:
            return ("miss",)
        return (entry.state, str(entry.reason) if entry.state == "negative" else entry.value)

    def add(self, key: bytes, value: bytes, **options: Any) -> Answer:
        return ("unmet" if self.cache.add(key, value, **options) is None else "ok",)

    def replace(self, key: bytes, value: bytes) -> Answer:
        return ("unmet" if self.cache.replace(key, self.serial, value) is None else "ok",)

    def remove(self, key: bytes) -> Answer:
        return ("ok" if self.cache.remove(key) else "miss",)

    def contains(self, key: bytes) -> Answer:
        return ("yes" if key in self.cache else "no",)

    def touch(self, key: bytes, **options: Any) -> Answer:
        return ("ok" if self.cache.touch(key, **options) else "miss",)

    def increment(self, key: bytes, by: bytes) -> Answer:
        return ("sum", str(self.cache.increment(key, int(by))))

    def append(self, key: bytes, data: bytes) -> Answer:
        """Retries if a put superseded the claim."""
        while True:
            with self.cache.claim(key) as claim:
                value = (claim.value or b"") + data
                if claim.put(value) is not None:
                    return ("value", value)

    def claim(self, key: bytes) -> Answer:
        self.claimed = self.cache.claim(key)
        return ("value", self.claimed.value) if self.claimed.found else ("none",)

    def store(self, value: bytes) -> Answer:
        return ("superseded" if self.claimed.put(value) is None else "ok",)

    def fill(self, key: bytes, value: bytes, then: str = "") -> Answer:
        word = "value"

        def make() -> bytes:
            nonlocal word
            if then == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if then == "fail":
                raise GivesUp
            word = "made"
            return value

        try:
            found: bytes = self.cache.get_or_fill(key, make)
        except GivesUp:
            return ("failed",)
        return (word, found)

    def begin(self, key: bytes, **options: Any) -> Answer:
        self.writer = self.cache.writer(key, **options)
        return ("ok",)

    def write(self, piece: bytes) -> Answer:
        self.writer.write(piece)
        return ("ok",)

    def commit(self) -> Answer:
        return ("superseded" if self.writer.commit() is None else "ok",)

    def abort(self) -> Answer:
        self.writer.abort()
        return ("ok",)

    def purge(self, what: bytes, which: bytes = b"", mode: str = "hard") -> Answer:
        soft = mode == "soft"
        match what:
            case b"tag":
                self.cache.purge_tag(which.decode(), soft=soft)
            case b"prefix":
                self.cache.purge_prefix(which, soft=soft)
            case _:
                self.cache.purge_all(soft=soft)
        return ("ok",)

    def clear(self) -> Answer:
        self.cache.clear()
        return ("ok",)

    def count(self) -> Answer:
        return ("count", str(sum(1 for _ in self.cache)))


def decoded(word: str) -> bytes:
    return b"" if word == "%" else unquote_to_bytes(word)


def encoded(word: str | bytes) -> str:
    data = word.encode() if isinstance(word, str) else word
    return "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02x}" for byte in data) or "%"


def options_of(words: list[bytes]) -> dict[str, Any]:
    """The options in the package's form."""
    options: dict[str, Any] = {}
    for word in words:
        name, value = word.decode().split("=", 1)
        options[name] = int(value) / 1000 if name in ("ttl", "stale") else value.split(",") if name == "tags" else value
    return options


def answered(actor: Actor, question: str, words: list[bytes]) -> Answer:
    work: Callable[..., Answer] | None = getattr(actor, question, None)
    if work is None:
        return ("cannot",)
    count = _WORDS.get(question, len(words))
    if question == "purge" and words[0] == b"all":
        count = 1
    try:
        return work(*words[:count], **options_of(words[count:]))
    except eyewall.Error as error:
        print(error, file=sys.stderr)
        return ("error", error.name)


def main() -> None:
    actor = Actor()
    for line in sys.stdin:
        question, *words = line.rstrip("\n").split("\t")
        print("\t".join(encoded(word) for word in answered(actor, question, [*map(decoded, words)])), flush=True)


main()
