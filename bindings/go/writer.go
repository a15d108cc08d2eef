package eyewall

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"unsafe"
)

// A Writer stores a value piece by piece. Look-ups don't find it before it is committed. One goroutine at a time may
// use it. If the process dies, nothing is stored.
type Writer struct {
	cache  *Cache
	share  *share
	writer unsafe.Pointer // eyewall_writer; nil after the end
}

// NewWriter begins a value of size bytes. If the size isn't known, it is -1; if it is known, no byte is copied twice.
//
// The writer claims the key: other writers, claims and fills of it wait, up to [Options.LockDeadline]. Plain puts and
// removes don't wait: they supersede the writer.
func (c *Cache) NewWriter(key string, size int64, options ...PutOption) (*Writer, error) {
	o, err := put(options)
	if err != nil {
		return nil, err
	}
	length := uint64(math.MaxUint64)
	if size >= 0 {
		length = uint64(size)
	}
	share := c.begin()
	if share == nil {
		return nil, ErrClosed
	}
	w := &Writer{cache: c, share: share}
	_, err = call(library.writerBegin, uintptr(c.handle), uintptr(address(key)), uintptr(len(key)), uintptr(length),
		uintptr(unsafe.Pointer(o)), uintptr(unsafe.Pointer(&w.writer)))
	runtime.KeepAlive(o)
	if err != nil {
		c.end(share)
		return nil, err
	}
	return w, nil
}

// Write appends all of these bytes or, after an error, none. After [ErrPinned] and [ErrBusy] the same call may be
// repeated. After any other error the value can't be committed.
func (w *Writer) Write(data []byte) (int, error) {
	if w.writer == nil {
		return 0, ErrClosed
	}
	if _, err := call(library.writerWrite, uintptr(w.writer), uintptr(addressOf(data)), uintptr(len(data))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Commit publishes the entry and ends the writer. It returns false if another caller put, removed or purged the entry
// after the writer began; then nothing is stored.
func (w *Writer) Commit() (bool, error) {
	if w.writer == nil {
		return false, ErrClosed
	}
	defer w.finish()
	answer, err := call(library.writerCommit, uintptr(w.writer), 0)
	return answer == statusOK && err == nil, err
}

// Close discards the value, unless it was committed. So a deferred Close is right after every outcome.
func (w *Writer) Close() error {
	if w.writer != nil {
		property(library.writerAbort, uintptr(w.writer))
		w.finish()
	}
	return nil
}

func (w *Writer) finish() {
	w.writer = nil
	w.cache.end(w.share)
}

const pieceBytes = 64 << 10

var pieces = sync.Pool{New: func() any { return new([pieceBytes]byte) }}

// PutReader stores what r returns until its end. If size isn't -1, it must be the number of these bytes. After an error
// nothing is stored, and a former entry remains.
func (c *Cache) PutReader(key string, r io.Reader, size int64, options ...PutOption) error {
	w, err := c.NewWriter(key, size, options...)
	if err != nil {
		return err
	}
	defer w.Close()
	piece := pieces.Get().(*[pieceBytes]byte)
	defer pieces.Put(piece)
	for read := int64(0); ; {
		n, err := r.Read(piece[:])
		read += int64(n)
		if size >= 0 && read > size {
			return fmt.Errorf("eyewall: PutReader got more than the %d bytes that its caller said", size)
		}
		if _, err := w.Write(piece[:n]); err != nil {
			return err
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		if size >= 0 && read < size {
			return fmt.Errorf("eyewall: PutReader got %d bytes, but its caller said %d: %w", read, size, io.ErrUnexpectedEOF)
		}
		// If another caller superseded the writer, this value counts as replaced at once.
		_, err = w.Commit()
		return err
	}
}
