package eyewall

import (
	"bytes"
	"runtime"
	"unsafe"
)

// A Claim is the right to change one key: over all processes, one caller has it at a time. End it. If the process dies,
// the claim ends with it. One goroutine at a time may use it.
type Claim struct {
	cache *Cache
	share *share
	claim unsafe.Pointer // eyewall_claim; nil after the end
	value []byte
	found bool
}

// Claim waits for the right to change a key, up to [Options.LockDeadline], and looks its entry up. While the claim
// stands, other claims, writers and fills of the key wait. Plain puts and removes don't wait: they supersede it.
//
// Goroutines that wait each occupy an operating system thread.
func (c *Cache) Claim(key string) (*Claim, error) {
	share := c.begin()
	if share == nil {
		return nil, ErrClosed
	}
	claim := &Claim{cache: c, share: share}
	f := frames.Get().(*frame)
	defer frames.Put(f)
	answer, err := call(library.claimBegin, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)),
		uintptr(unsafe.Pointer(&claim.claim)), uintptr(unsafe.Pointer(&f.hit)))
	if err != nil {
		c.end(share)
		return nil, err
	}
	if answer == statusOK {
		// Not kept in place: a held entry could not be evicted to make room for its successor.
		claim.value, claim.found = bytes.Clone(f.hit.bytes()), true
		err = f.hit.check()
		f.hit.release()
	}
	if err != nil {
		claim.End()
		return nil, err
	}
	return claim, nil
}

// Value returns a copy of the value that the claim found, and whether there was one.
func (c *Claim) Value() ([]byte, bool) {
	return c.value, c.found
}

// Put stores a value and ends the claim, even after an error. It returns false if another caller changed the entry
// after the claim began; then nothing is stored.
func (c *Claim) Put(value []byte, options ...PutOption) (bool, error) {
	o, err := put(options)
	if err != nil {
		c.End()
		return false, err
	}
	answer, err := c.finish(func(claim uintptr) (status, error) {
		return call(library.claimPut, claim, uintptr(addressOf(value)), uintptr(len(value)), uintptr(unsafe.Pointer(o)), 0)
	})
	runtime.KeepAlive(o)
	return answer == statusOK && err == nil, err
}

// Remove removes the entry, if there is one, and ends the claim. It returns false if another caller changed the entry
// after the claim began.
func (c *Claim) Remove() (bool, error) {
	answer, err := c.finish(func(claim uintptr) (status, error) { return call(library.claimRemove, claim) })
	return answer == statusOK && err == nil, err
}

// End ends the claim and leaves the entry unchanged. It does nothing if the claim has ended.
func (c *Claim) End() {
	c.finish(func(claim uintptr) (status, error) {
		property(library.claimEnd, claim)
		return statusOK, nil
	})
}

func (c *Claim) finish(work func(claim uintptr) (status, error)) (status, error) {
	if c.claim == nil {
		return statusMiss, ErrClosed
	}
	claim := uintptr(c.claim)
	c.claim = nil
	defer c.cache.end(c.share)
	return work(claim)
}
