package eyewall

import (
	"io/fs"
	"math"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// Options says how [Open] opens or creates a volume. The zero value has the defaults.
//
// The creation of a volume fixes its Size, EntryBytesMax and EntrySizeHint. Asking for others later is an error
// ([ErrOptionsDiffer]); 0 accepts the volume as it is.
type Options struct {
	// Size of the volume in bytes, including all overhead: a hard cap. 0: 64 MiB. At least 512 KiB.
	Size uint64
	// EntryBytesMax is the largest entry in bytes: 48, plus key, metadata and value. 0: a sixteenth of the size, at
	// most 4 MiB. At most a quarter of the size.
	EntryBytesMax uint64
	// EntrySizeHint is the size of a typical entry in bytes, from which the index gets its first size. 0: 1024.
	EntrySizeHint uint32
	// Mode has the permission bits of a new volume; the umask doesn't apply. 0: 0600. Readers trust every user who
	// can write the volume.
	Mode fs.FileMode
	// Group is the group of a new volume. nil: the process's own.
	Group *uint32
	// LockDeadline is how long a call waits for a stopped process, or for another caller's claim. 0: a second.
	LockDeadline time.Duration
	// TierBytes is the maximum size of a tier: shared memory in front of a volume on a disk, which holds copies of
	// hot entries. 0: none.
	TierBytes uint64
	// TierFolder is the folder of the tier's file. Empty: /dev/shm.
	TierFolder string

	// MustExist: the volume must exist.
	MustExist bool
	// ReadOnly opens the volume for reading only. All hits are copies then.
	ReadOnly bool
	// SecureErase: a new volume overwrites dead entries with zeros.
	SecureErase bool
	// SurviveSIGBUS: if the volume's file is truncated or its storage fails, calls return [ErrFailed] and the process
	// is not killed. Without it, such a fault ends the process: Go can't recover from it. It installs a handler for the
	// whole process, which passes faults elsewhere to the one of Go.
	SurviveSIGBUS bool
	// ClearUnclean empties the volume after a crash of the machine. Without it, entries that can be verified are kept.
	ClearUnclean bool
	// PutAsideBroken renames a broken file to NAME.broken-SECONDS and creates a new volume in its place. Without it,
	// opening such a file returns [ErrCorrupt].
	PutAsideBroken bool
	// VerifyHits verifies the checksum of each value before it is returned, which reads the whole value each time. A
	// damaged entry is removed, and is a miss.
	VerifyHits bool
	// Fleet: the volume belongs to a fleet, and purges wait for its agent even if it has never run.
	Fleet bool
}

// cOpenOptions is eyewall_open_options.
type cOpenOptions struct {
	size, entryBytesMax               uint64
	entrySizeHint, flags, mode, group uint32
	lockDeadlineMS, tierBytes         uint64
	tierFolder                        unsafe.Pointer
	_                                 [4]uint64
}

func (o *Options) toC() (*cOpenOptions, error) {
	if o.LockDeadline < 0 {
		return nil, invalid("Options.LockDeadline is %v, but must not be negative", o.LockDeadline)
	}
	if strings.ContainsRune(o.TierFolder, 0) {
		return nil, invalid("Options.TierFolder contains a zero byte")
	}
	c := &cOpenOptions{
		size: o.Size, entryBytesMax: o.EntryBytesMax, entrySizeHint: o.EntrySizeHint,
		mode: uint32(o.Mode.Perm()), lockDeadlineMS: milliseconds(o.LockDeadline), tierBytes: o.TierBytes,
	}
	flags := []bool{
		o.MustExist, o.ReadOnly, o.SecureErase, o.SurviveSIGBUS, o.ClearUnclean, o.Group != nil, o.PutAsideBroken,
		o.VerifyHits, o.Fleet,
	}
	for bit, isSet := range flags {
		if isSet {
			c.flags |= 1 << bit
		}
	}
	if o.Group != nil {
		c.group = *o.Group
	}
	if o.TierFolder != "" {
		c.tierFolder = addressOf(append([]byte(o.TierFolder), 0))
	}
	return c, nil
}

// Open opens the volume at path, and creates it if there is none. All processes that open the path share its entries.
// A process may open a volume several times.
//
// Close the cache when the program ends: the last process that closes a volume on a disk writes it to storage.
func Open(path string, options Options) (*Cache, error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, invalid("the path %q is empty or contains a zero byte: name the volume's file", path)
	}
	c, err := options.toC()
	if err != nil {
		return nil, err
	}
	name := append([]byte(path), 0)
	cache := &Cache{path: path}
	_, err = call(library.open, uintptr(addressOf(name)), uintptr(unsafe.Pointer(c)), uintptr(unsafe.Pointer(&cache.handle)))
	runtime.KeepAlive(c)
	if err != nil {
		return nil, err
	}
	cache.flights.running = make(map[string]*flight)
	return cache, nil
}

// A PutOption is an option of a call that stores an entry.
type PutOption func(*putOptions)

// TTL sets the time to live. 0: until the entry is evicted.
func TTL(ttl time.Duration) PutOption {
	return func(o *putOptions) { o.ttl = ttl }
}

// Stale sets how long the entry stays usable after its TTL, for [Cache.Lookup] and [UseStale].
func Stale(stale time.Duration) PutOption {
	return func(o *putOptions) { o.stale = stale }
}

// Tags sets labels by which entries are purged together: up to 32, each of 1 to 255 bytes of UTF-8.
func Tags(tags ...string) PutOption {
	return func(o *putOptions) { o.tags = tags }
}

// Metadata stores up to 65,535 bytes of the program's own beside the value, such as a media type.
func Metadata(metadata []byte) PutOption {
	return func(o *putOptions) { o.metadata = metadata }
}

// BegunIn says when the work on the value began ([Cache.Now]). If a purge since then applies to the entry, no look-up
// finds it.
func BegunIn(epoch Epoch) PutOption {
	return func(o *putOptions) { o.begunIn = &epoch }
}

// An Epoch is a moment between two purges of a cache.
type Epoch struct {
	words [2]uint64
}

type putOptions struct {
	ttl, stale time.Duration
	tags       []string
	metadata   []byte
	begunIn    *Epoch
}

// cBytes is eyewall_bytes.
type cBytes struct {
	data   unsafe.Pointer
	length uintptr
}

// cPutOptions is eyewall_put_options. Its pointers are Go's, so the collector keeps their bytes.
type cPutOptions struct {
	ttlMS, staleMS uint64
	metadata       unsafe.Pointer
	metadataLength uintptr
	tags           unsafe.Pointer
	tagsCount      uintptr
	begunIn        unsafe.Pointer
	_              [4]uint64
}

// toC returns nil for the defaults.
func (o *putOptions) toC() (*cPutOptions, error) {
	if o.ttl < 0 || o.stale < 0 {
		return nil, invalid("the TTL %v or the stale time %v is negative: give 0 or more", o.ttl, o.stale)
	}
	if o.ttl == 0 && o.stale == 0 && len(o.tags) == 0 && len(o.metadata) == 0 && o.begunIn == nil {
		return nil, nil
	}
	c := &cPutOptions{
		ttlMS: milliseconds(o.ttl), staleMS: milliseconds(o.stale),
		metadata: addressOf(o.metadata), metadataLength: uintptr(len(o.metadata)),
		tagsCount: uintptr(len(o.tags)), begunIn: unsafe.Pointer(o.begunIn),
	}
	if len(o.tags) > 0 {
		tags := make([]cBytes, len(o.tags))
		for i, tag := range o.tags {
			tags[i] = cBytes{address(tag), uintptr(len(tag))}
		}
		c.tags = unsafe.Pointer(unsafe.SliceData(tags))
	}
	return c, nil
}

func put(options []PutOption) (*cPutOptions, error) {
	if len(options) == 0 {
		return nil, nil
	}
	var o putOptions
	for _, option := range options {
		option(&o)
	}
	return o.toC()
}

// milliseconds rounds up, since 0 means no limit.
func milliseconds(duration time.Duration) uint64 {
	if duration > Forever-time.Millisecond {
		return math.MaxInt64 / uint64(time.Millisecond)
	}
	return uint64((duration + time.Millisecond - 1) / time.Millisecond)
}

// duration is the reverse of milliseconds; what Go can't express is the longest duration.
func duration(milliseconds uint64) time.Duration {
	if milliseconds > math.MaxInt64/uint64(time.Millisecond) {
		return Forever
	}
	return time.Duration(milliseconds) * time.Millisecond
}
