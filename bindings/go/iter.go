package eyewall

import (
	"iter"
	"unsafe"
)

// Iter iterates over all valid entries, in no order:
//
//	for hit, err := range cache.Iter() {
//		if err != nil {
//			return err
//		}
//		fmt.Println(hit.Key(), hit.Len())
//	}
//
// Each hit is released when the body of the loop ends. An iteration may or may not meet entries that are put or evicted
// meanwhile; it meets every other entry once. An error ends it.
func (c *Cache) Iter() iter.Seq2[*Hit, error] {
	return c.iterate(0)
}

// IterAll iterates over stale and negative entries, too.
func (c *Cache) IterAll() iter.Seq2[*Hit, error] {
	return c.iterate(1)
}

func (c *Cache) iterate(all uintptr) iter.Seq2[*Hit, error] {
	return func(yield func(*Hit, error) bool) {
		share := c.begin()
		if share == nil {
			yield(nil, ErrClosed)
			return
		}
		defer c.end(share)
		iterator := new(unsafe.Pointer)
		if _, err := call(library.iterBegin, uintptr(c.handle), all, uintptr(unsafe.Pointer(iterator))); err != nil {
			yield(nil, err)
			return
		}
		defer func() { property(library.iterEnd, uintptr(*iterator)) }()
		for {
			h := &held{cache: c, share: share}
			answer, err := call(library.iterNext, uintptr(*iterator), uintptr(unsafe.Pointer(&h.hit)))
			if err != nil {
				yield(nil, err)
				return
			}
			if answer == statusEnd || !yieldHit(h, yield) {
				return
			}
		}
	}
}

// yieldHit releases the hit even if the body of the loop panics.
func yieldHit(h *held, yield func(*Hit, error) bool) bool {
	h.share.count.Add(1)
	hit := newHit(h)
	defer hit.Release()
	return yield(hit, nil)
}
