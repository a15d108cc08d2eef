package httpcache

import (
	"maps"
	"net/http"
	"strconv"
	"time"
)

// A recorder is the handler's response to a request that the cache couldn't answer. It keeps the response until it is
// complete. If the handler flushes it, or its body is too large to be stored, it passes on what it has, and everything
// that follows.
//
//	keeps --complete--> decided, ended
//	  | flushed, too large
//	  v
//	decided --> passes --complete--> ended
type recorder struct {
	w            http.ResponseWriter
	bodyBytesMax int
	stored       stored
	isPassing    bool
	// decided is closed when it is known whether the response is kept or passed on, ended when the handler has returned.
	decided, ended chan struct{}
	panicked       any
}

// record calls the handler, in a goroutine of its own: other requests mustn't wait for a body that is passed on to a
// slow client.
func record(w http.ResponseWriter, r *http.Request, next http.Handler, bodyBytesMax int) *recorder {
	rec := &recorder{w: w, bodyBytesMax: bodyBytesMax, decided: make(chan struct{}), ended: make(chan struct{})}
	rec.stored.header = http.Header{}
	// The handler makes the whole response, whatever the client has.
	whole := r.Clone(r.Context())
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"} {
		whole.Header.Del(name)
	}
	go func() {
		defer close(rec.ended)
		defer rec.decide()
		hasReturned := false
		defer func() {
			if rec.panicked = recover(); rec.panicked == nil && !hasReturned {
				rec.panicked = http.ErrAbortHandler // The handler called runtime.Goexit.
			}
		}()
		next.ServeHTTP(rec, whole)
		rec.WriteHeader(http.StatusOK)
		hasReturned = true
	}()
	return rec
}

// decide is called by the handler's goroutine only.
func (rec *recorder) decide() {
	select {
	case <-rec.decided:
	default:
		close(rec.decided)
	}
}

// Header has only the fields of the handler, not those that an outer one has set.
func (rec *recorder) Header() http.Header {
	return rec.stored.header
}

// WriteHeader ignores informational responses.
func (rec *recorder) WriteHeader(status int) {
	if rec.stored.status == 0 && status >= 200 {
		rec.stored.status = status
		rec.stored.header = rec.stored.header.Clone()
		rec.stored.at = time.Now()
	}
}

func (rec *recorder) Write(data []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	if !rec.isPassing && len(rec.stored.body)+len(data) > rec.bodyBytesMax {
		if err := rec.pass(); err != nil {
			return 0, err
		}
	}
	if rec.isPassing {
		return rec.w.Write(data)
	}
	rec.stored.body = append(rec.stored.body, data...)
	return len(data), nil
}

// pass sends what was kept.
func (rec *recorder) pass() error {
	rec.WriteHeader(http.StatusOK)
	rec.isPassing = true
	body := rec.stored.body
	rec.stored.body = nil
	rec.decide()
	maps.Copy(rec.w.Header(), rec.stored.header)
	rec.w.WriteHeader(rec.stored.status)
	_, err := rec.w.Write(body)
	return err
}

// FlushError is what [http.ResponseController] calls.
func (rec *recorder) FlushError() error {
	if !rec.isPassing {
		if err := rec.pass(); err != nil {
			return err
		}
	}
	return http.NewResponseController(rec.w).Flush()
}

// Flush makes it an [http.Flusher].
func (rec *recorder) Flush() {
	rec.FlushError()
}

// finish waits for the handler's end, and sends a response that was kept. A panic of the handler goes on in the server's
// own goroutine.
func (rec *recorder) finish(w http.ResponseWriter, r *http.Request) {
	<-rec.ended
	if rec.panicked != nil {
		panic(rec.panicked)
	}
	if !rec.isPassing {
		rec.stored.send(w, r, "fwd=miss")
	}
}

// storable returns a complete response, and for how long it may be stored.
func (rec *recorder) storable(defaultTTL time.Duration) (*stored, time.Duration) {
	select {
	case <-rec.ended:
	default:
		// Either the response is passed on, or the handler returns at this moment.
		if rec.isPassing {
			return nil, 0
		}
		<-rec.ended
	}
	if rec.isPassing || rec.panicked != nil || rec.isTruncated() {
		return nil, 0
	}
	return &rec.stored, rec.stored.freshness(defaultTTL)
}

// isTruncated says whether the handler announced another length than it wrote, for instance since reading a file failed.
func (rec *recorder) isTruncated() bool {
	lengths := rec.stored.header.Values("Content-Length")
	return len(lengths) > 0 && lengths[0] != strconv.Itoa(len(rec.stored.body))
}
