package eyewall

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// status is an eyewall_status: an answer from 0 on, an error below.
type status int32

const (
	statusOK         status = 0
	statusMiss       status = 1
	statusStale      status = 2
	statusNegative   status = 3
	statusUnmet      status = 4
	statusSuperseded status = 5
	statusFill       status = 6
	statusEnd        status = 7
	statusTooSmall   status = 8
)

// Code says what kind of error happened. Each code is itself an error, to compare with:
//
//	if errors.Is(err, eyewall.ErrEntryTooLarge) { ... }
type Code int32

// The errors of libeyewall. [Error] holds a code and the message of the case.
const (
	// ErrArgument: an argument is invalid.
	ErrArgument Code = -1
	// ErrKeyEmpty: the key has no bytes.
	ErrKeyEmpty Code = -2
	// ErrKeyTooLong: the key has more than 65,535 bytes, or is longer than the volume allows.
	ErrKeyTooLong Code = -3
	// ErrMetadataTooLong: the metadata, including tags, has more than 65,535 bytes.
	ErrMetadataTooLong Code = -4
	// ErrTooManyTags: the put has more than 32 tags.
	ErrTooManyTags Code = -5
	// ErrTagLength: a tag has no bytes, or more than 255.
	ErrTagLength Code = -6
	// ErrNotACounter: Increment found an entry that is not a counter.
	ErrNotACounter Code = -7
	// ErrEntryTooLarge: the entry is larger than [Cache.EntryBytesMax].
	ErrEntryTooLarge Code = -8
	// ErrPinned: readers hold too many entries, so the cache can't make room. Release hits and try again.
	ErrPinned Code = -9
	// ErrBusy: another process or goroutine held the key or a lock until the deadline. Try again.
	ErrBusy Code = -10
	// ErrInterrupted: the writer of the entry gave up, or was superseded.
	ErrInterrupted Code = -11
	// ErrReadOnly: the volume was opened for reading only, or the file permits only reading.
	ErrReadOnly Code = -12
	// ErrNotFound: there is no volume, and [Options.MustExist] is set.
	ErrNotFound Code = -13
	// ErrForeign: the file is not a volume. It was left unchanged.
	ErrForeign Code = -14
	// ErrVersion: the file has another version of the format, or another byte order.
	ErrVersion Code = -15
	// ErrCorrupt: the file is damaged.
	ErrCorrupt Code = -16
	// ErrOptionsDiffer: the volume has another size, hint or limit than the options ask for.
	ErrOptionsDiffer Code = -17
	// ErrOutOfRange: the size, or EntryBytesMax, is out of range.
	ErrOutOfRange Code = -18
	// ErrNoTier: the volume can't have the tier that the options ask for.
	ErrNoTier Code = -19
	// ErrNoSpace: the file system has no room for the volume.
	ErrNoSpace Code = -20
	// ErrTooManyProcesses: the volume's table of processes is full.
	ErrTooManyProcesses Code = -21
	// ErrFailed: bytes of the volume were lost under its map, or another file took its place. Close the cache and
	// open it again.
	ErrFailed Code = -22
	// ErrIO: the operating system refused a call.
	ErrIO Code = -23
	// ErrInternal: a bug in libeyewall. Please report it with its message.
	ErrInternal Code = -24
)

var (
	// ErrClosed: the cache, hit, writer or claim was closed, released or ended before.
	ErrClosed = errors.New("eyewall: already closed")
	// ErrLibrary: libeyewall can't be used. The package comment says where it is looked for.
	ErrLibrary = errors.New("eyewall: libeyewall can't be loaded")
)

var codeNames = [...]string{
	"", "argument", "key_empty", "key_too_long", "metadata_too_long", "too_many_tags", "tag_length", "not_a_counter",
	"entry_too_large", "pinned", "busy", "interrupted", "read_only", "not_found", "foreign", "version", "corrupt",
	"options_differ", "out_of_range", "no_tier", "no_space", "too_many_processes", "failed", "io", "internal",
}

// String returns the name that all languages give the error, such as "entry_too_large".
func (c Code) String() string {
	if i := -int(c); i > 0 && i < len(codeNames) {
		return codeNames[i]
	}
	return "code " + strconv.Itoa(int(c))
}

// Error makes a code an error to compare with.
func (c Code) Error() string {
	return "eyewall: " + c.String()
}

// Error is an error of libeyewall.
type Error struct {
	// Code says what kind of error it is. errors.Is compares with it.
	Code Code
	// Message is a sentence that says what happened and what to do.
	Message string
}

func (e *Error) Error() string {
	return "eyewall: " + e.Message
}

// Unwrap returns the code.
func (e *Error) Unwrap() error {
	return e.Code
}

// NegativeError says that there is nothing under a key, and why. [Cache.Fill] returns it for a negative entry. If the
// function that makes a value returns one, Fill remembers it: until TTL has passed, no process tries again.
type NegativeError struct {
	// Reason is a code of the program's own, for instance a status of HTTP.
	Reason uint16
	// TTL is for how long a new negative entry is valid; 0: until it is evicted. Errors of found entries have no TTL.
	TTL time.Duration
}

func (e *NegativeError) Error() string {
	return fmt.Sprintf("eyewall: there is no value, for reason %d", e.Reason)
}

func invalid(format string, arguments ...any) error {
	return &Error{Code: ErrArgument, Message: fmt.Sprintf(format, arguments...)}
}
