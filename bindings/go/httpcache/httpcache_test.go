package httpcache_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eyewall"
	"eyewall/httpcache"
)

// site is a server whose handler is behind the cache, and counts its calls.
type site struct {
	*httptest.Server
	t     *testing.T
	cache *eyewall.Cache
	calls atomic.Int32
}

func openVolume(t *testing.T) *eyewall.Cache {
	t.Helper()
	// A loaded machine may stop the owner of a lock for longer than the default of a second.
	cache, err := eyewall.Open(filepath.Join(t.TempDir(), "volume"), eyewall.Options{Size: 16 << 20, LockDeadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	return cache
}

func start(t *testing.T, options httpcache.Options, handler http.HandlerFunc) *site {
	t.Helper()
	cache := openVolume(t)
	s := &site{t: t, cache: cache}
	s.Server = httptest.NewServer(httpcache.New(cache, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		handler(w, r)
	}), options))
	t.Cleanup(s.Close)
	return s
}

// ask sends a request. The fields are name, value, name, value.
func (s *site) ask(method, path string, fields ...string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		request.Header.Set(fields[i], fields[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(body)
}

// wantCalls asks twice, and wants so many calls of the handler.
func (s *site) wantCalls(want int32, method, path string, fields ...string) {
	s.t.Helper()
	before := s.calls.Load()
	_, first := s.ask(method, path, fields...)
	_, second := s.ask(method, path, fields...)
	if got := s.calls.Load() - before; got != want {
		s.t.Errorf("%s %s %q: %d calls, want %d", method, path, fields, got, want)
	}
	if first != second {
		s.t.Errorf("%s %s: %q, then %q", method, path, first, second)
	}
}

func TestAHitIsTheSameResponse(t *testing.T) {
	s := start(t, httpcache.Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Type", "text/css")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "for this connection")
		w.Header().Set("Age", "7")
		w.Header().Add("Link", "<a>")
		w.Header().Add("Link", "<b>")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "no such style")
	})
	first, _ := s.ask("GET", "/a?b=c")
	second, body := s.ask("GET", "/a?b=c")
	if second.StatusCode != 404 || body != "no such style" || second.ContentLength != 13 || s.calls.Load() != 1 {
		t.Fatalf("got %v, %q", second, body)
	}
	if first.Header.Get("Cache-Status") != "Eyewall; fwd=miss" || second.Header.Get("Cache-Status") != "Eyewall; hit" {
		t.Fatalf("got %q and %q", first.Header["Cache-Status"], second.Header["Cache-Status"])
	}
	if age, err := strconv.Atoi(second.Header.Get("Age")); err != nil || age < 7 {
		t.Fatalf("the age is %q", second.Header["Age"])
	}
	if len(second.Header["Link"]) != 2 || second.Header.Get("Content-Type") != "text/css" || second.Header.Get("X-Hop") != "" || second.Header.Get("Date") == "" {
		t.Fatalf("got %v", second.Header)
	}
	head, body := s.ask("HEAD", "/a?b=c")
	if head.StatusCode != 404 || body != "" || head.ContentLength != 13 || s.calls.Load() != 1 {
		t.Fatalf("HEAD: %v", head)
	}
	s.wantCalls(1, "GET", "/a?b=d")
	s.wantCalls(2, "HEAD", "/other")
}

func TestOnlyResponsesThatMayBeStoredAre(t *testing.T) {
	past := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	future := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for i, c := range []struct {
		calls  int32
		status int
		fields []string
	}{
		{1, 200, []string{"Cache-Control", "max-age=60"}},
		{1, 200, []string{"Cache-Control", "max-age=0, s-maxage=60"}},
		{1, 200, []string{"Cache-Control", `public, Max-Age="99999999999999999999"`}},
		{1, 200, []string{"Expires", future}},
		{1, 410, []string{"Cache-Control", "max-age=60"}},
		{1, 204, []string{"Cache-Control", "max-age=60"}},
		{1, 301, []string{"Cache-Control", "max-age=60", "Location", "/x"}},
		{2, 200, nil},
		{2, 200, []string{"Expires", past}},
		{2, 200, []string{"Expires", "0"}},
		{2, 200, []string{"Cache-Control", "max-age=x"}},
		{2, 200, []string{"Cache-Control", "max-age=-1"}},
		{2, 200, []string{"Cache-Control", "max-age=60", "Age", "60"}},
		{2, 200, []string{"Cache-Control", "s-maxage=0, max-age=60"}},
		{2, 200, []string{"Cache-Control", "max-age=60, no-store"}},
		{2, 200, []string{"Cache-Control", "max-age=60, private"}},
		{2, 200, []string{"Cache-Control", `max-age=60, No-Cache="set-cookie"`}},
		{2, 200, []string{"Cache-Control", "max-age=60", "Set-Cookie", "a=b"}},
		{2, 200, []string{"Cache-Control", "max-age=60", "Vary", "*"}},
		{2, 500, []string{"Cache-Control", "max-age=60"}},
		{2, 302, []string{"Cache-Control", "max-age=60", "Location", "/x"}},
	} {
		s := start(t, httpcache.Options{}, func(w http.ResponseWriter, r *http.Request) {
			for i := 0; i < len(c.fields); i += 2 {
				w.Header().Set(c.fields[i], c.fields[i+1])
			}
			w.WriteHeader(c.status)
		})
		s.wantCalls(c.calls, "GET", fmt.Sprint("/", i, "/", c.fields[:min(1, len(c.fields))]))
		s.Close()
	}
}

func TestADefaultTTL(t *testing.T) {
	s := start(t, httpcache.Options{DefaultTTL: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/never" {
			w.Header().Set("Cache-Control", "max-age=0")
		}
		io.WriteString(w, "page")
	})
	s.wantCalls(1, "GET", "/page")
	s.wantCalls(2, "GET", "/never")
}

func TestRequestsThatGoToTheHandler(t *testing.T) {
	s := start(t, httpcache.Options{DefaultTTL: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
	})
	s.wantCalls(2, "GET", "/a", "Authorization", "Basic YTpi")
	s.wantCalls(2, "GET", "/a", "Range", "bytes=0-1")
	s.wantCalls(2, "GET", "/a", "Cache-Control", "no-store")
	s.wantCalls(2, "POST", "/a")
	s.wantCalls(1, "GET", "/a", "Cache-Control", "no-cache", "Cookie", "a=b")
	if _, body := s.ask("GET", "/a", "Authorization", "Basic YTpi"); body != "GET /a" {
		t.Fatalf("got %q", body)
	}
}

func TestAChangeRemovesTheResponsesOfItsAddress(t *testing.T) {
	version := "old"
	s := start(t, httpcache.Options{DefaultTTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Language")
		switch r.Method {
		case "POST":
			if r.URL.RawQuery == "fails" {
				w.WriteHeader(http.StatusForbidden)
			} else {
				version = "new"
			}
		case "GET":
			io.WriteString(w, version+" "+r.Header.Get("Accept-Language"))
		}
	})
	for _, language := range []string{"de", "en"} {
		s.ask("GET", "/a", "Accept-Language", language)
	}
	s.ask("OPTIONS", "/a")
	s.ask("POST", "/a?fails")
	if _, body := s.ask("GET", "/a", "Accept-Language", "de"); body != "old de" || s.calls.Load() != 4 {
		t.Fatalf("got %q after %d calls", body, s.calls.Load())
	}
	s.ask("POST", "/a")
	for _, language := range []string{"de", "en"} {
		if _, body := s.ask("GET", "/a", "Accept-Language", language); body != "new "+language {
			t.Fatalf("got %q", body)
		}
	}
}

func TestVariantsAreKeptApart(t *testing.T) {
	s := start(t, httpcache.Options{DefaultTTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "accept-language, Accept")
		w.Header().Add("Vary", "Accept")
		fmt.Fprint(w, r.Header.Get("Accept-Language"), " ", r.Header.Get("Accept"))
	})
	for range 2 {
		for _, language := range []string{"de", "en", ""} {
			for _, accept := range []string{"text/html", "a\x22, \x22b"} {
				if _, body := s.ask("GET", "/a", "Accept-Language", language, "Accept", accept); body != language+" "+accept {
					t.Fatalf("got %q", body)
				}
			}
		}
	}
	if s.calls.Load() != 6 {
		t.Fatalf("%d calls", s.calls.Load())
	}
}

func TestAVariantThatVariesByMoreFieldsIsKeptApart(t *testing.T) {
	s := start(t, httpcache.Options{DefaultTTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		language := r.Header.Get("Accept-Language")
		w.Header().Add("Vary", "Accept-Language")
		if language == "de" {
			w.Header().Add("Vary", "Cookie")
			io.WriteString(w, r.Header.Get("Cookie")+" ")
		}
		io.WriteString(w, language)
	})
	ask := func(language, user, want string, calls int32) {
		t.Helper()
		before := s.calls.Load()
		if _, body := s.ask("GET", "/a", "Accept-Language", language, "Cookie", user); body != want {
			t.Errorf("%s and %s get %q", language, user, body)
		}
		if got := s.calls.Load() - before; got != calls {
			t.Errorf("%s and %s: %d calls, want %d", language, user, got, calls)
		}
	}
	ask("en", "ada", "en", 1)
	ask("en", "bob", "en", 0)
	// This response isn't stored, but the next one says that the cookie matters.
	ask("de", "ada", "ada de", 1)
	ask("de", "bob", "bob de", 1)
	ask("de", "ada", "ada de", 1)
	for range 2 {
		ask("de", "ada", "ada de", 0)
		ask("de", "bob", "bob de", 0)
	}
	// A response that varies by fewer fields is stored.
	ask("en", "bob", "en", 1)
	ask("en", "bob", "en", 0)
}

func TestConditionalRequests(t *testing.T) {
	modified := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	s := start(t, httpcache.Options{DefaultTTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			t.Error("the handler got a condition")
		}
		w.Header().Set("ETag", `W/"v1"`)
		w.Header().Set("Last-Modified", modified.Format(http.TimeFormat))
		io.WriteString(w, "page")
	})
	for range 2 { // By a miss, then by a hit.
		for _, c := range []struct {
			status      int
			name, value string
		}{
			{304, "If-None-Match", `"v0", "v1"`},
			{304, "If-None-Match", "*"},
			{200, "If-None-Match", `"v2"`},
			{304, "If-Modified-Since", modified.Format(http.TimeFormat)},
			{200, "If-Modified-Since", modified.Add(-time.Second).Format(http.TimeFormat)},
			{200, "If-Modified-Since", "yesterday"},
		} {
			response, body := s.ask("GET", "/page", c.name, c.value)
			if response.StatusCode != c.status || (body == "") != (c.status == 304) || response.Header.Get("ETag") != `W/"v1"` {
				t.Errorf("%s: %s gives %d, %q", c.name, c.value, response.StatusCode, body)
			}
		}
	}
	if s.calls.Load() != 1 {
		t.Fatalf("%d calls", s.calls.Load())
	}
}

func TestConcurrentRequestsCostOneCall(t *testing.T) {
	release := make(chan struct{})
	s := start(t, httpcache.Options{DefaultTTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		<-release
		w.Header().Set("Vary", "Accept")
		io.WriteString(w, "page")
	})
	var group sync.WaitGroup
	for range 20 {
		group.Add(1)
		go func() {
			defer group.Done()
			if _, body := s.ask("GET", "/page"); body != "page" {
				t.Errorf("got %q", body)
			}
		}()
	}
	close(release)
	group.Wait()
	if s.calls.Load() != 1 {
		t.Fatalf("%d calls", s.calls.Load())
	}
}

func TestLargeAndFlushedBodiesArePassedOn(t *testing.T) {
	read := make(chan struct{})
	s := start(t, httpcache.Options{DefaultTTL: time.Hour, BodyBytesMax: 1000}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Kind", r.URL.Path)
		switch r.URL.Path {
		case "/large":
			for range 100 {
				io.WriteString(w, strings.Repeat("x", 100))
			}
		case "/flushed":
			io.WriteString(w, "first ")
			w.(http.Flusher).Flush()
			<-read
			io.WriteString(w, "second")
		}
	})
	s.wantCalls(2, "GET", "/large")
	if response, body := s.ask("GET", "/large"); len(body) != 10_000 || response.Header.Get("X-Kind") != "/large" {
		t.Fatalf("got %d bytes", len(body))
	}
	response, err := http.Get(s.URL + "/flushed")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	piece := make([]byte, 6)
	if _, err := io.ReadFull(response.Body, piece); err != nil || string(piece) != "first " {
		t.Fatalf("got %q, %v", piece, err)
	}
	close(read)
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "second" {
		t.Fatalf("got %q, %v", rest, err)
	}
}

func TestHandlersThatFail(t *testing.T) {
	s := start(t, httpcache.Options{DefaultTTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	})
	for range 2 {
		if response, err := http.Get(s.URL); err == nil {
			response.Body.Close()
			t.Fatal("the client got a response")
		}
	}
	if s.calls.Load() < 2 {
		t.Fatal("a response of a handler that panicked was stored")
	}
}

func TestTruncatedBodiesAreNotStored(t *testing.T) {
	s := start(t, httpcache.Options{DefaultTTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", r.URL.Path[1:])
		io.WriteString(w, "half")
	})
	for range 2 {
		response, err := http.Get(s.URL + "/8")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if string(body) != "half" || err == nil {
			t.Fatalf("got %q, %v", body, err)
		}
	}
	if s.calls.Load() != 2 {
		t.Fatalf("%d calls", s.calls.Load())
	}
	s.wantCalls(1, "GET", "/4")
}

func TestAClientThatLeavesStoresNothing(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	s := start(t, httpcache.Options{DefaultTTL: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			defer close(ended)
			close(began)
			<-r.Context().Done()
			io.WriteString(w, "half")
			return
		}
		io.WriteString(w, "whole")
	})
	ctx, cancel := context.WithCancel(t.Context())
	request, _ := http.NewRequestWithContext(ctx, "GET", s.URL+"/", nil)
	go http.DefaultTransport.RoundTrip(request)
	<-began
	cancel()
	<-ended
	if _, body := s.ask("GET", "/"); body != "whole" {
		t.Fatalf("got %q", body)
	}
}

func TestTagsAndForeignEntries(t *testing.T) {
	s := start(t, httpcache.Options{
		DefaultTTL: time.Hour,
		Tags:       func(r *http.Request, header http.Header) []string { return header["X-Tag"] },
	}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Tag", "news")
		io.WriteString(w, "page")
	})
	s.wantCalls(1, "GET", "/")
	if err := s.cache.PurgeTag("news"); err != nil {
		t.Fatal(err)
	}
	s.wantCalls(1, "GET", "/")

	key := "http " + s.URL + "/\n"
	if isThere, err := s.cache.Contains(key); err != nil || !isThere {
		t.Fatalf("the key is another one: %v", err)
	}
	for _, metadata := range []string{"", "R", "R 1 2\r\n\r\n", "R 200 5\r\nno field\r\n\r\n", "V x"} {
		if err := s.cache.Put(key, []byte("foreign"), eyewall.Metadata([]byte(metadata))); err != nil {
			t.Fatal(err)
		}
		if _, body := s.ask("GET", "/"); body != "page" {
			t.Fatalf("got %q by the metadata %q", body, metadata)
		}
	}
	s.cache.Close()
	s.wantCalls(2, "GET", "/")
}
