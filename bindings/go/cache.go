package eyewall

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"
)

// Forever is the remaining time of an entry that is valid until it is evicted.
const Forever time.Duration = math.MaxInt64

// A Cache is an open volume. All goroutines may use it at once.
type Cache struct {
	handle  unsafe.Pointer // eyewall_cache; it is C's
	path    string
	use     use
	flights flights
}

// scratchBytes is the size of values that Get reads in one call: larger than most objects of a web server.
const scratchBytes = 4096

// frame is memory for the results of one call. A variable on a goroutine's stack would become garbage at each call,
// since the library writes through a pointer to it.
type frame struct {
	hit     cHit
	length  uintptr
	sum     int64
	scratch [scratchBytes]byte
}

var frames = sync.Pool{New: func() any { return new(frame) }}

// Path returns the path that the cache was opened with.
func (c *Cache) Path() string {
	return c.path
}

// String describes the cache.
func (c *Cache) String() string {
	return "eyewall.Cache(" + strconv.Quote(c.path) + ")"
}

// Close closes the cache. Calls that begin later return [ErrClosed]. If calls still run, or hits, writers and claims
// aren't released, the last one to end closes the volume.
//
// The last process that closes a volume on a disk writes it to storage, which may take seconds. To wait for that while
// other goroutines may still use the cache, call [Cache.Sync] first.
func (c *Cache) Close() error {
	if !c.use.close() {
		return ErrClosed
	}
	c.freeIfUnused()
	return nil
}

// begin begins a call, which ends by end with the same share. It returns nil if the cache is closed.
func (c *Cache) begin() *share {
	share := c.use.begin()
	if share == nil {
		c.freeIfUnused()
	}
	return share
}

func (c *Cache) end(share *share) {
	share.count.Add(-1)
	if c.use.isClosed.Load() {
		c.freeIfUnused()
	}
}

func (c *Cache) freeIfUnused() {
	if c.use.takeIfUnused() {
		call(library.close, uintptr(c.handle))
	}
}

// Get returns a copy of the value of a key. If there is no valid entry, it returns false.
func (c *Cache) Get(key string) ([]byte, bool, error) {
	value, isThere, err := c.GetAppend(nil, key)
	if isThere && value == nil {
		value = []byte{}
	}
	return value, isThere, err
}

// GetAppend appends the value of a key to dst and returns the extended slice. It allocates only if dst has no room for
// the value. If there is no valid entry, it returns dst and false.
func (c *Cache) GetAppend(dst []byte, key string) ([]byte, bool, error) {
	share := c.begin()
	if share == nil {
		return dst, false, ErrClosed
	}
	defer c.end(share)
	f := frames.Get().(*frame)
	defer frames.Put(f)
	buffer := dst[len(dst):cap(dst)]
	if len(buffer) < scratchBytes {
		buffer = f.scratch[:]
	}
	answer, err := call(library.getCopy, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)),
		uintptr(addressOf(buffer)), uintptr(len(buffer)), uintptr(unsafe.Pointer(&f.length)))
	switch {
	case err != nil || answer == statusMiss:
		return dst, false, err
	case answer == statusTooSmall:
		return c.appendLarge(dst, key, f)
	}
	// The append copies nothing onto itself if the buffer is dst's own.
	return append(dst, buffer[:f.length]...), true, nil
}

// appendLarge appends a value that didn't fit into the buffer. The look-up was counted, so this one is not.
func (c *Cache) appendLarge(dst []byte, key string, f *frame) ([]byte, bool, error) {
	answer, err := call(library.peek, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)), uintptr(unsafe.Pointer(&f.hit)))
	if err != nil || answer == statusMiss {
		return dst, false, err
	}
	defer f.hit.release()
	appended := append(slices.Grow(dst, int(f.hit.length)), f.hit.bytes()...)
	if err := f.hit.check(); err != nil {
		return dst, false, err
	}
	return appended, true, nil
}

// Contains says whether there is a valid entry. It doesn't count as a request for the entry.
func (c *Cache) Contains(key string) (bool, error) {
	answer, err := c.callKey(library.contains, key)
	return answer == statusOK && err == nil, err
}

// Delete removes an entry, and says whether there was a valid one.
func (c *Cache) Delete(key string) (bool, error) {
	answer, err := c.callKey(library.remove, key)
	return answer == statusOK && err == nil, err
}

func (c *Cache) callKey(function uintptr, key string) (status, error) {
	share := c.begin()
	if share == nil {
		return statusMiss, ErrClosed
	}
	defer c.end(share)
	return call(function, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)))
}

// Put stores a value in place of any former entry. If it needs room, it evicts other entries.
func (c *Cache) Put(key string, value []byte, options ...PutOption) error {
	_, err := c.put(library.put, key, value, options)
	return err
}

// Add stores a value only if there is no valid entry, and says whether it did.
func (c *Cache) Add(key string, value []byte, options ...PutOption) (bool, error) {
	answer, err := c.put(library.add, key, value, options)
	return answer == statusOK && err == nil, err
}

func (c *Cache) put(function uintptr, key string, value []byte, options []PutOption) (status, error) {
	share := c.begin()
	if share == nil {
		return statusMiss, ErrClosed
	}
	defer c.end(share)
	o, err := put(options)
	if err != nil {
		return statusMiss, err
	}
	answer, err := call(function, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)),
		uintptr(addressOf(value)), uintptr(len(value)), uintptr(unsafe.Pointer(o)), 0)
	runtime.KeepAlive(o)
	return answer, err
}

// Replace stores a value only if the entry still has the serial ([Info.Serial]), and says whether it did.
func (c *Cache) Replace(key string, serial uint64, value []byte, options ...PutOption) (bool, error) {
	share := c.begin()
	if share == nil {
		return false, ErrClosed
	}
	defer c.end(share)
	o, err := put(options)
	if err != nil {
		return false, err
	}
	answer, err := call(library.replaceIf, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)), uintptr(serial),
		uintptr(addressOf(value)), uintptr(len(value)), uintptr(unsafe.Pointer(o)), 0)
	runtime.KeepAlive(o)
	return answer == statusOK && err == nil, err
}

// PutNegative stores a negative entry: there is nothing under the key, for this reason. Get misses; Lookup and Fill
// return the reason.
func (c *Cache) PutNegative(key string, reason uint16, options ...PutOption) error {
	share := c.begin()
	if share == nil {
		return ErrClosed
	}
	defer c.end(share)
	o, err := put(options)
	if err != nil {
		return err
	}
	_, err = call(library.putNegative, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)), uintptr(reason),
		uintptr(unsafe.Pointer(o)), 0)
	runtime.KeepAlive(o)
	return err
}

// cTouchOptions is eyewall_touch_options.
type cTouchOptions struct {
	setTimes, setMetadata, ifSerial bool
	ttlMS, staleMS                  uint64
	metadata                        unsafe.Pointer
	metadataLength                  uintptr
	serial                          uint64
	begunIn                         unsafe.Pointer
	_                               [4]uint64
}

// Touch gives an entry new times: it is valid from now for ttl (0: until it is evicted), and usable for stale after
// that. It says whether there is a fresh or stale entry.
func (c *Cache) Touch(key string, ttl, stale time.Duration) (bool, error) {
	if ttl < 0 || stale < 0 {
		return false, invalid("the TTL %v or the stale time %v is negative: give 0 or more", ttl, stale)
	}
	share := c.begin()
	if share == nil {
		return false, ErrClosed
	}
	defer c.end(share)
	o := &cTouchOptions{setTimes: true, ttlMS: milliseconds(ttl), staleMS: milliseconds(stale)}
	answer, err := call(library.touch, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)), uintptr(unsafe.Pointer(o)))
	return answer == statusOK && err == nil, err
}

// cCounterOptions is eyewall_counter_options.
type cCounterOptions struct {
	start     int64
	hasBounds bool
	min, max  int64
	put       *cPutOptions
	_         [4]uint64
}

// Increment adds to a counter, atomically over all processes, and returns the sum. A counter is an entry of eight
// bytes, an int64 in little-endian order. An absent counter begins at 0, and only it takes the options.
func (c *Cache) Increment(key string, by int64, options ...PutOption) (int64, error) {
	share := c.begin()
	if share == nil {
		return 0, ErrClosed
	}
	defer c.end(share)
	o, err := put(options)
	if err != nil {
		return 0, err
	}
	counter := &cCounterOptions{put: o}
	f := frames.Get().(*frame)
	defer frames.Put(f)
	_, err = call(library.increment, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)), uintptr(by),
		uintptr(unsafe.Pointer(counter)), uintptr(unsafe.Pointer(&f.sum)))
	runtime.KeepAlive(counter)
	if err != nil {
		return 0, err
	}
	return f.sum, nil
}

// Clear removes all entries. A purge of all, [Cache.PurgeAll], takes less time.
func (c *Cache) Clear() error {
	return c.call(library.clear, 0)
}

// Sweep removes purged and expired entries now. It is never necessary.
func (c *Cache) Sweep() error {
	return c.call(library.sweep, 0)
}

// Sync writes everything that was stored, removed or purged before to storage, and waits for it.
func (c *Cache) Sync() error {
	return c.call(library.sync)
}

func (c *Cache) call(function uintptr, arguments ...uintptr) error {
	share := c.begin()
	if share == nil {
		return ErrClosed
	}
	defer c.end(share)
	_, err := call(function, append([]uintptr{uintptr(c.handle)}, arguments...)...)
	return err
}

// Size returns the size of the volume in bytes, including all overhead; 0 after Close.
func (c *Cache) Size() uint64 {
	return c.property(library.size)
}

// EntryBytesMax returns the largest accepted entry in bytes: 48, plus key, metadata and value; 0 after Close.
func (c *Cache) EntryBytesMax() uint64 {
	return c.property(library.entryBytesMax)
}

// IsFailed says whether bytes of the volume were lost under its map, as [Options.SurviveSIGBUS] reports. Then all calls
// return [ErrFailed]: close the cache, replace the file, and open it again.
func (c *Cache) IsFailed() bool {
	return c.property(library.isFailed)&0xff != 0
}

func (c *Cache) property(function uintptr) uint64 {
	share := c.begin()
	if share == nil {
		return 0
	}
	defer c.end(share)
	return uint64(property(function, uintptr(c.handle)))
}
