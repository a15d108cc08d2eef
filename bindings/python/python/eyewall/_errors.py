"""What calls raise. That there is nothing is no error.

Each class has the name of its status in the other languages (`name`); its message says what to do.
"""

from __future__ import annotations


class Error(Exception):
    """Why an operation did not happen."""

    name = "internal"


class InvalidError(Error, ValueError):
    """What was given can't be stored, or asked for: another key, value or option helps."""

    name = "argument"


class KeyEmptyError(InvalidError):
    """A key of no bytes."""

    name = "key_empty"


class KeyTooLongError(InvalidError):
    """A key of more than 65,535 bytes, or more than the volume's limit."""

    name = "key_too_long"


class MetadataTooLongError(InvalidError):
    """The tags take too much room."""

    name = "metadata_too_long"


class TooManyTagsError(InvalidError):
    """More than 32 tags."""

    name = "too_many_tags"


class TagLengthError(InvalidError):
    """A tag of no bytes, or of more than 255."""

    name = "tag_length"


class NotACounterError(InvalidError):
    """An entry that is to be counted up holds something else."""

    name = "not_a_counter"


class EntryTooLargeError(InvalidError):
    """The entry is larger than the volume's `entry_bytes_max`."""

    name = "entry_too_large"


class OutOfRangeError(InvalidError):
    """The size, or `entry_bytes_max`, is out of range."""

    name = "out_of_range"


class SerializerError(InvalidError, TypeError):
    """The value has no form without a serializer, or was stored by one that this cache doesn't use."""


class ClosedError(InvalidError):
    """The cache was closed."""


class EndedError(InvalidError):
    """The claim, flight or writer has ended."""


class RetryError(Error):
    """Not now: the same call may do it later."""

    name = "busy"


class BusyError(RetryError, TimeoutError):
    """Another process or thread held what was needed until the deadline."""

    name = "busy"


class PinnedError(RetryError):
    """Readers hold too much of the cache to make room: views, above all."""

    name = "pinned"


class InterruptedWriteError(RetryError):
    """The writer of an entry gave up, or was superseded."""

    name = "interrupted"


class VolumeError(Error):
    """The volume can't be used, or not so."""

    name = "io"


class ReadOnlyError(VolumeError, PermissionError):
    """The volume, or the right to it, is for reading only."""

    name = "read_only"


class NotFoundError(VolumeError, FileNotFoundError):
    """There is no volume, and it wasn't to be created."""

    name = "not_found"


class ForeignError(VolumeError):
    """The file is no volume; it was left as it is."""

    name = "foreign"


class VersionError(VolumeError):
    """The file is of another version of the format, or of a machine of another byte order."""

    name = "version"


class CorruptError(VolumeError):
    """The file contradicts itself."""

    name = "corrupt"


class OptionsDifferError(VolumeError, ValueError):
    """The volume was created with another size, hint or limit than the options ask for."""

    name = "options_differ"


class NoTierError(VolumeError, ValueError):
    """A tier that the volume can't have."""

    name = "no_tier"


class NoSpaceError(VolumeError, OSError):
    """The storage has no room for the volume."""

    name = "no_space"


class TooManyProcessesError(VolumeError):
    """The volume's table of processes is full."""

    name = "too_many_processes"


class FailedError(VolumeError):
    """Bytes of the volume were lost under its map, or another file has taken its place: close it, and open it again."""

    name = "failed"


class StorageError(VolumeError, OSError):
    """The operating system refused."""

    name = "io"


class UntrustedError(VolumeError, PermissionError):
    """Others may write the volume, and pickle would let them run code here."""

    name = "argument"


class NotStoredWarning(RuntimeWarning):
    """A value was made and is given, but could not be stored."""
