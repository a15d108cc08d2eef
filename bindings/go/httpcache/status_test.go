package httpcache_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"eyewall/httpcache"
)

func TestHandlersOfOtherMethodsFlushAndHijack(t *testing.T) {
	read := make(chan struct{})
	s := start(t, httpcache.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hijacked" {
			connection, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")
			return
		}
		io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		<-read
		io.WriteString(w, "second ")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	})
	response, err := http.Post(s.URL+"/flushed", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	piece := make([]byte, 6)
	if _, err := io.ReadFull(response.Body, piece); err != nil || string(piece) != "first " {
		t.Fatalf("got %q, %v", piece, err)
	}
	close(read)
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "second " {
		t.Fatalf("got %q, %v", rest, err)
	}
	if _, body := s.ask("POST", "/hijacked"); body != "own" {
		t.Fatalf("got %q", body)
	}
}

// bareWriter can neither flush nor give its connection away.
type bareWriter struct{ http.ResponseWriter }

func TestWritersOfOtherMethods(t *testing.T) {
	var given http.ResponseWriter
	handler := httpcache.New(openVolume(t), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given = w
	}), httpcache.Options{})
	own := bareWriter{httptest.NewRecorder()}
	handler.ServeHTTP(own, httptest.NewRequest("CONNECT", "a.test:443", nil))
	if given != own {
		t.Fatalf("CONNECT got a %T", given)
	}
	handler.ServeHTTP(own, httptest.NewRequest("POST", "/", nil))
	_, _, hijack := given.(http.Hijacker).Hijack()
	for _, err := range []error{hijack, http.NewResponseController(given).Flush()} {
		if !errors.Is(err, http.ErrNotSupported) {
			t.Fatalf("got %v", err)
		}
	}
	given.(http.Flusher).Flush()
}
