package eyewall

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// A Value is what the function of [Cache.Fill] makes.
type Value struct {
	// Bytes is the value itself. Don't change it after the function has returned.
	Bytes []byte
	// TTL is the time to live. 0: until the entry is evicted.
	TTL time.Duration
	// Stale is how long the entry stays usable after its TTL.
	Stale time.Duration
	// Tags are labels by which entries are purged together.
	Tags []string
	// Metadata are bytes of the program's own, stored beside the value.
	Metadata []byte
}

// A FillOption is an option of [Cache.Fill].
type FillOption func(*fillOptions)

type fillOptions struct {
	useStale     bool
	onStoreError func(error)
}

// UseStale lets callers have a stale value instead of waiting while another caller renews it.
func UseStale() FillOption {
	return func(o *fillOptions) { o.useStale = true }
}

// OnStoreError calls f if a value was made and can't be stored, for instance because it is too large. Fill returns the
// value without an error, too.
func OnStoreError(f func(error)) FillOption {
	return func(o *fillOptions) { o.onStoreError = f }
}

const (
	// fillSlice is how long a wait for another process stays in one call of the library. A caller learns the end of its
	// context after that time at the latest.
	fillSlice = 20 * time.Millisecond
	// fillThreads is how many goroutines may be in such calls at once, since each occupies an operating system thread.
	fillThreads = 32
)

var fillTurns = make(chan struct{}, fillThreads)

// flights are the keys that a goroutine of this process waits for or makes. So of all goroutines that want a key, one
// asks the library.
type flights struct {
	mutex   sync.Mutex
	running map[string]*flight
}

// flight is one goroutine's work for all that want a key. The fields are written before done is closed.
//
// The waiting goroutines look up a value that was stored, since a purge may have removed it before they asked. They
// share only a result that no look-up finds: an error, or a value that can't be stored.
type flight struct {
	done     chan struct{}
	isShared bool
	value    []byte
	err      error
}

// Fill returns a copy of the value of a key. If there is no valid entry, one caller over all processes and goroutines
// makes the value by its function and stores it; the others wait for it. If the caller or its process dies, another
// one makes the value.
//
// The function runs in the goroutine of its caller, with its context. Its error ends the calls of the goroutines that
// wait for it, except when its own context has ended: then one of them makes the value. Other processes try again. If
// the error is a [NegativeError], Fill stores that there is no value, and all callers get it.
//
// A wait obeys ctx, and costs no operating system thread, except for up to 32 keys at a time that other processes make.
// Give ctx a deadline, unless the functions of all processes have one.
func (c *Cache) Fill(ctx context.Context, key string, make func(context.Context) (Value, error), options ...FillOption) ([]byte, error) {
	value, isThere, err := c.Get(key)
	if isThere || err != nil {
		return value, err
	}
	var o fillOptions
	for _, option := range options {
		option(&o)
	}
	for {
		f, isOurs := c.flights.join(key)
		if isOurs {
			return c.lead(ctx, key, f, make, &o)
		}
		if o.useStale {
			if value, isThere, err := c.getUsable(key); isThere || err != nil {
				return value, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.done:
		}
		if f.isShared {
			return bytes.Clone(f.value), f.err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if value, isThere, err := c.Get(key); isThere || err != nil {
			return value, err
		}
	}
}

// getUsable returns a copy of a value that is fresh or stale.
func (c *Cache) getUsable(key string) ([]byte, bool, error) {
	hit, err := c.Lookup(key)
	if hit == nil || err != nil {
		return nil, false, err
	}
	defer hit.Release()
	if hit.Info().IsNegative {
		return nil, false, nil
	}
	value := append([]byte{}, hit.Bytes()...)
	if err := hit.Check(); err != nil {
		return nil, false, err
	}
	return value, true, nil
}

// join returns the running flight of a key, or a new one that the caller leads.
func (f *flights) join(key string) (*flight, bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if running := f.running[key]; running != nil {
		return running, false
	}
	begun := &flight{done: make(chan struct{})}
	f.running[key] = begun
	return begun, true
}

func (f *flights) end(key string, ended *flight) {
	f.mutex.Lock()
	delete(f.running, key)
	f.mutex.Unlock()
	close(ended.done)
}

// lead finds or makes the value for all goroutines that wait for the flight. It ends the flight even if make panics.
func (c *Cache) lead(ctx context.Context, key string, f *flight, make func(context.Context) (Value, error), o *fillOptions) ([]byte, error) {
	defer c.flights.end(key, f)
	found, err := c.beginFill(ctx, key, o.useStale)
	if err == nil && found.flight == nil {
		return found.value, nil
	}
	var value Value
	var refused error
	if err == nil {
		value, refused, err = c.makeValue(ctx, found, make)
	}
	if err != nil {
		f.err, f.isShared = err, ctx.Err() == nil
		return nil, err
	}
	if refused != nil {
		f.value, f.isShared = value.Bytes, true
		if o.onStoreError != nil {
			o.onStoreError(refused)
		}
	}
	return bytes.Clone(value.Bytes), nil
}

// filling is what the library says to a caller of a fill: a value, or the duty to make it.
type filling struct {
	value  []byte
	flight unsafe.Pointer // eyewall_flight
	share  *share
}

// beginFill finds the value, or gets the right to make it. While another process has that right, it waits.
func (c *Cache) beginFill(ctx context.Context, key string, useStale bool) (filling, error) {
	for wait := time.Duration(0); ; wait = fillSlice {
		if err := ctx.Err(); err != nil {
			return filling{}, err
		}
		if wait > 0 {
			select {
			case fillTurns <- struct{}{}:
			case <-ctx.Done():
				return filling{}, ctx.Err()
			}
		}
		found, err := c.tryFill(key, wait, useStale)
		if wait > 0 {
			<-fillTurns
		}
		if !errors.Is(err, ErrBusy) {
			return found, err
		}
	}
}

// fillAnswer has the places of the library's results.
type fillAnswer struct {
	hit    cHit
	reason uint16
	flight unsafe.Pointer
}

func (c *Cache) tryFill(key string, wait time.Duration, useStale bool) (found filling, err error) {
	share := c.begin()
	if share == nil {
		return filling{}, ErrClosed
	}
	defer func() {
		if found.flight == nil {
			c.end(share)
		}
	}()
	a := new(fillAnswer)
	stale := uintptr(0)
	if useStale {
		stale = 1
	}
	answer, err := call(library.fillBegin, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)),
		uintptr(milliseconds(wait)), stale, uintptr(unsafe.Pointer(&a.hit)), uintptr(unsafe.Pointer(&a.reason)),
		uintptr(unsafe.Pointer(&a.flight)))
	runtime.KeepAlive(a)
	switch {
	case err != nil:
		return filling{}, err
	case answer == statusFill:
		return filling{flight: a.flight, share: share}, nil
	case answer == statusNegative:
		return filling{}, &NegativeError{Reason: a.reason}
	}
	defer a.hit.release()
	value := bytes.Clone(a.hit.bytes())
	return filling{value: value}, a.hit.check()
}

// makeValue makes and stores the value. It ends the library's flight even if make panics. The first error says why the
// value can't be stored, the second one why there is none.
func (c *Cache) makeValue(ctx context.Context, f filling, make func(context.Context) (Value, error)) (value Value, refused, err error) {
	defer c.end(f.share)
	isEnded := false
	defer func() {
		if !isEnded {
			property(library.flightEnd, uintptr(f.flight))
		}
	}()
	value, err = make(ctx)
	if err != nil {
		var negative *NegativeError
		if errors.As(err, &negative) && negative.TTL >= 0 {
			isEnded = true
			call(library.flightRemember, uintptr(f.flight), uintptr(negative.Reason), uintptr(milliseconds(negative.TTL)))
		}
		return Value{}, nil, err
	}
	options := putOptions{ttl: value.TTL, stale: value.Stale, tags: value.Tags, metadata: value.Metadata}
	p, err := options.toC()
	if err != nil {
		return value, err, nil
	}
	isEnded = true
	// A flight that was superseded has stored nothing. Its value is right for its caller, who began before.
	_, err = call(library.flightStore, uintptr(f.flight), uintptr(addressOf(value.Bytes)), uintptr(len(value.Bytes)),
		uintptr(unsafe.Pointer(p)), 0)
	runtime.KeepAlive(p)
	return value, err, nil
}
