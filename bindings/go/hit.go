package eyewall

import (
	"bytes"
	"io"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// cHit is eyewall_hit.
type cHit struct {
	value  uintptr
	length uintptr
	held   [8]uint64
}

func (h *cHit) bytes() []byte {
	return view(h.value, h.length)
}

func (h *cHit) release() {
	purego.SyscallN(library.hitFree, uintptr(unsafe.Pointer(h)))
}

// check says whether the bytes that were read so far are those that were put.
func (h *cHit) check() error {
	_, err := call(library.hitCheck, uintptr(unsafe.Pointer(h)))
	return err
}

// Info has the properties of an entry.
type Info struct {
	// Serial identifies this version of the entry. It grows with every put of the key.
	Serial uint64
	// Created is when the entry was put.
	Created time.Time
	// TTLLeft is the remaining time to live, or [Forever].
	TTLLeft time.Duration
	// UsableLeft is the remaining time in which the entry may be used, fresh or stale, or [Forever].
	UsableLeft time.Duration
	// IsStale: the entry was past its TTL at the look-up.
	IsStale bool
	// IsNegative: there is no value, for the Reason.
	IsNegative bool
	// Reason is the reason code of a negative entry.
	Reason uint16
	// IsCopy: the bytes are a copy on this process's heap, since too much of the volume is held.
	IsCopy bool
	// IsIntact: with [Options.SurviveSIGBUS], the bytes that were read so far are those that were put.
	IsIntact bool
}

// cInfo is eyewall_info.
type cInfo struct {
	serial, createdMS, ttlLeftMS, usableLeftMS uint64
	reason                                     uint16
	isNegative, isStale, isCopy, isIntact      bool
	_                                          [4]uint64
}

// A Hit is a pinned entry: its bytes lie in the volume, and nobody moves or changes them before the release. Release it
// soon, since a pinned entry can't be evicted. One goroutine at a time may use a hit; any goroutine may release it.
//
// If too much of the volume is held, further hits are copies ([Info.IsCopy]), which take up to 64 MiB of a process.
//
// As a safety net, the garbage collector releases a hit that became unreachable. Don't rely on that: it may come
// seconds later. It also means that the bytes are valid only while the hit itself is reachable, so defer its release.
type Hit struct {
	held    *held
	cleanup runtime.Cleanup
}

// held is the part of a hit that the collector's clean-up needs.
type held struct {
	hit        cHit
	cache      *Cache
	share      *share
	isReleased atomic.Bool
}

func (h *held) release() bool {
	if !h.isReleased.CompareAndSwap(false, true) {
		return false
	}
	h.hit.release()
	h.cache.end(h.share)
	return true
}

// newHit takes over the hit and the share of a call.
func newHit(h *held) *Hit {
	hit := &Hit{held: h}
	hit.cleanup = runtime.AddCleanup(hit, func(h *held) { h.release() }, h)
	return hit
}

// GetHit returns the entry of a key without copying it. If there is no valid entry, it returns nil. Release the hit.
func (c *Cache) GetHit(key string) (*Hit, error) {
	hit, _, err := c.look(library.get, key)
	return hit, err
}

// Lookup returns the entry of a key whatever its state: fresh, stale or negative ([Hit.Info] says which). If there is
// none, it returns nil. Release the hit.
func (c *Cache) Lookup(key string) (*Hit, error) {
	hit, _, err := c.look(library.lookup, key)
	return hit, err
}

func (c *Cache) look(function uintptr, key string) (*Hit, status, error) {
	share := c.begin()
	if share == nil {
		return nil, statusMiss, ErrClosed
	}
	h := &held{cache: c, share: share}
	answer, err := call(function, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)), uintptr(unsafe.Pointer(&h.hit)))
	if err != nil || answer == statusMiss {
		c.end(share)
		return nil, answer, err
	}
	return newHit(h), answer, nil
}

// Release unpins the entry. The hit's bytes must not be read after that. A second release does nothing.
func (h *Hit) Release() {
	h.cleanup.Stop()
	h.held.release()
}

// Close releases the hit, as an [io.Closer].
func (h *Hit) Close() error {
	h.Release()
	return nil
}

// Bytes returns the value's bytes, where they lie. They must not be changed: they are every process's. They are valid
// until the release, and while the hit is reachable. After the release it returns nil.
func (h *Hit) Bytes() []byte {
	if h.held.isReleased.Load() {
		return nil
	}
	return h.held.hit.bytes()
}

// Len returns the length of the value.
func (h *Hit) Len() int {
	return len(h.Bytes())
}

// Check says whether the bytes that were read so far are those that were put. With [Options.SurviveSIGBUS], call it
// after reading: if it returns [ErrFailed], any of them may have been zeros.
func (h *Hit) Check() error {
	if h.held.isReleased.Load() {
		return ErrClosed
	}
	err := h.held.hit.check()
	runtime.KeepAlive(h)
	return err
}

// Key returns the entry's key.
func (h *Hit) Key() string {
	return string(h.part(library.hitKey))
}

// Metadata returns a copy of the entry's metadata.
func (h *Hit) Metadata() []byte {
	return h.part(library.hitMeta)
}

// Tags returns the entry's tags.
func (h *Hit) Tags() []string {
	var tags []string
	for {
		tag := h.part(library.hitTag, uintptr(len(tags)))
		if len(tag) == 0 {
			return tags
		}
		tags = append(tags, string(tag))
	}
}

// part copies the result of a function that returns eyewall_bytes: its address and length come in two registers.
func (h *Hit) part(function uintptr, arguments ...uintptr) []byte {
	if h.held.isReleased.Load() {
		return nil
	}
	arguments = append([]uintptr{uintptr(unsafe.Pointer(&h.held.hit))}, arguments...)
	data, length, _ := purego.SyscallN(function, arguments...)
	copied := bytes.Clone(view(data, length))
	runtime.KeepAlive(h)
	return copied
}

// Info returns the entry's other properties. After the release it returns the zero value.
func (h *Hit) Info() Info {
	if h.held.isReleased.Load() {
		return Info{}
	}
	c := new(cInfo)
	_, err := call(library.hitInfo, uintptr(unsafe.Pointer(&h.held.hit)), uintptr(unsafe.Pointer(c)))
	runtime.KeepAlive(h)
	if err != nil {
		return Info{}
	}
	return Info{
		Serial: c.serial, Created: time.UnixMilli(int64(c.createdMS)),
		TTLLeft: duration(c.ttlLeftMS), UsableLeft: duration(c.usableLeftMS),
		IsStale: c.isStale, IsNegative: c.isNegative, Reason: c.reason, IsCopy: c.isCopy, IsIntact: c.isIntact,
	}
}

// WriteTo writes the value to w from where it lies.
func (h *Hit) WriteTo(w io.Writer) (int64, error) {
	if h.held.isReleased.Load() {
		return 0, ErrClosed
	}
	n, err := w.Write(h.Bytes())
	runtime.KeepAlive(h)
	return int64(n), err
}

// Reader returns a reader of the value. Its Close releases the hit.
func (h *Hit) Reader() *Reader {
	return &Reader{*bytes.NewReader(h.Bytes()), h}
}

// A Reader reads the value of a hit where it lies, at any place: it is an [io.ReadSeeker], an [io.ReaderAt] and an
// [io.WriterTo], for instance for [net/http.ServeContent].
type Reader struct {
	bytes.Reader
	hit *Hit
}

// Close releases the hit. The reader is at its end after that.
func (r *Reader) Close() error {
	r.Reset(nil)
	r.hit.Release()
	return nil
}
