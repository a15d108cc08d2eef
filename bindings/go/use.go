package eyewall

import (
	"sync/atomic"
	"unsafe"
)

// use counts the running calls and the held objects of a cache, so that nobody closes a volume under them.
//
// Each call adds to one of several counts, so goroutines on different processors rarely write the same cache line. A
// call adds first and reads isClosed then; close writes isClosed first and reads the counts then. One of both sees the
// other. After isClosed is set, no count rises for longer than a call needs to see it, so counts that were all zero
// once stay so.
type use struct {
	isClosed atomic.Bool
	isFreed  atomic.Bool
	shares   [16]share
}

type share struct {
	count atomic.Int64
	_     [56]byte
}

// begin returns the count that it has raised, or nil if the cache is closed.
func (u *use) begin() *share {
	// A goroutine's stack has an address of its own, which spreads goroutines over the counts.
	var here byte
	share := &u.shares[uintptr(unsafe.Pointer(&here))>>11%uintptr(len(u.shares))]
	share.count.Add(1)
	if !u.isClosed.Load() {
		return share
	}
	share.count.Add(-1)
	return nil
}

// close says whether this call is the one that closes the cache.
func (u *use) close() bool {
	return u.isClosed.CompareAndSwap(false, true)
}

// takeIfUnused says, once, that the cache is closed and unused: the caller frees it.
func (u *use) takeIfUnused() bool {
	for i := range u.shares {
		if u.shares[i].count.Load() != 0 {
			return false
		}
	}
	return u.isClosed.Load() && u.isFreed.CompareAndSwap(false, true)
}
