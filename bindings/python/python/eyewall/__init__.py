"""Eyewall: one memory-mapped cache that all processes of a machine share, with a hard cap in bytes.

    cache = eyewall.Cache("/dev/shm/pages", size="64M")
    cache["greeting"] = "Hello"
    cache.put("/news", b"<h1>News</h1>", ttl=60, tags=["news"])

See `Cache` for all that it does, and the README for the backends of frameworks.
"""

from ._cache import Cache, Negative
from ._errors import (
    BusyError,
    ClosedError,
    CorruptError,
    EndedError,
    EntryTooLargeError,
    Error,
    FailedError,
    ForeignError,
    InterruptedWriteError,
    InvalidError,
    KeyEmptyError,
    KeyTooLongError,
    MetadataTooLongError,
    NoSpaceError,
    NotACounterError,
    NotFoundError,
    NoTierError,
    NotStoredWarning,
    OptionsDifferError,
    OutOfRangeError,
    PinnedError,
    ReadOnlyError,
    RetryError,
    SerializerError,
    StorageError,
    TagLengthError,
    TooManyProcessesError,
    TooManyTagsError,
    UntrustedError,
    VersionError,
    VolumeError,
)
from ._eyewall import Claim, Entry, Flight, View, Walk, Writer, __version__
from ._serializers import Serializer

__all__ = [
    "BusyError",
    "Cache",
    "Claim",
    "ClosedError",
    "CorruptError",
    "EndedError",
    "Entry",
    "EntryTooLargeError",
    "Error",
    "FailedError",
    "Flight",
    "ForeignError",
    "InterruptedWriteError",
    "InvalidError",
    "KeyEmptyError",
    "KeyTooLongError",
    "MetadataTooLongError",
    "Negative",
    "NoSpaceError",
    "NoTierError",
    "NotACounterError",
    "NotFoundError",
    "NotStoredWarning",
    "OptionsDifferError",
    "OutOfRangeError",
    "PinnedError",
    "ReadOnlyError",
    "RetryError",
    "Serializer",
    "SerializerError",
    "StorageError",
    "TagLengthError",
    "TooManyProcessesError",
    "TooManyTagsError",
    "UntrustedError",
    "VersionError",
    "View",
    "VolumeError",
    "Walk",
    "Writer",
    "__version__",
]
