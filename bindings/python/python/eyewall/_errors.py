"""The exceptions. A miss is not an error.

The `name` of a class is that of the status in other languages. A message says what to do.
"""

from __future__ import annotations


class Error(Exception):
    """Base class: why an operation failed."""

    name = "internal"


class InvalidError(Error, ValueError):
    """An argument is invalid: try another key, value or option."""

    name = "argument"


class KeyEmptyError(InvalidError):
    """The key has no bytes."""

    name = "key_empty"


class KeyTooLongError(InvalidError):
    """The key has more than 65,535 bytes, or is longer than the volume allows."""

    name = "key_too_long"


class MetadataTooLongError(InvalidError):
    """The metadata, including tags, is too long."""

    name = "metadata_too_long"


class TooManyTagsError(InvalidError):
    """The put has more than 32 tags."""

    name = "too_many_tags"


class TagLengthError(InvalidError):
    """A tag has no bytes, or more than 255."""

    name = "tag_length"


class NotACounterError(InvalidError):
    """`increment` found an entry that is not a counter."""

    name = "not_a_counter"


class EntryTooLargeError(InvalidError):
    """The entry is larger than the volume's `entry_bytes_max`."""

    name = "entry_too_large"


class OutOfRangeError(InvalidError):
    """The size, or `entry_bytes_max`, is out of range."""

    name = "out_of_range"


class SerializerError(InvalidError, TypeError):
    """The value needs a serializer, or was stored by one that this cache doesn't use."""


class ClosedError(InvalidError):
    """The cache was closed."""


class EndedError(InvalidError):
    """The claim, flight or writer has ended."""


class RetryError(Error):
    """A temporary failure: the same call may succeed later."""

    name = "busy"


class BusyError(RetryError, TimeoutError):
    """Another process or thread held the key or a lock until the deadline."""

    name = "busy"


class PinnedError(RetryError):
    """Readers hold too many entries to make room. Release views first."""

    name = "pinned"


class InterruptedWriteError(RetryError):
    """The writer of the entry gave up, or was superseded."""

    name = "interrupted"


class VolumeError(Error):
    """The volume can't be used, or not in this way."""

    name = "io"


class ReadOnlyError(VolumeError, PermissionError):
    """The volume was opened for reading only, or the file permits only reading."""

    name = "read_only"


class NotFoundError(VolumeError, FileNotFoundError):
    """There is no volume, and `must_exist` is set."""

    name = "not_found"


class ForeignError(VolumeError):
    """The file is not a volume. It was left unchanged."""

    name = "foreign"


class VersionError(VolumeError):
    """The file has another version of the format, or comes from a machine with another byte order."""

    name = "version"


class CorruptError(VolumeError):
    """The file is damaged."""

    name = "corrupt"


class OptionsDifferError(VolumeError, ValueError):
    """The volume has another size, hint or limit than the options ask for."""

    name = "options_differ"


class NoTierError(VolumeError, ValueError):
    """The volume can't have the tier that the options ask for."""

    name = "no_tier"


class NoSpaceError(VolumeError, OSError):
    """The file system has no room for the volume."""

    name = "no_space"


class TooManyProcessesError(VolumeError):
    """The volume's table of processes is full."""

    name = "too_many_processes"


class FailedError(VolumeError):
    """Bytes of the volume were lost under its map, or another file took its place: close it and open it again."""

    name = "failed"


class StorageError(VolumeError, OSError):
    """The operating system refused a call."""

    name = "io"


class UntrustedError(VolumeError, PermissionError):
    """Other users may write the volume, so its pickles could run their code in this process."""

    name = "argument"


class NotStoredWarning(RuntimeWarning):
    """A value was made and returned, but could not be stored."""
