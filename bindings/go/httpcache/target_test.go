package httpcache_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"eyewall/httpcache"
)

func TestRewrittenAddressesAreKeptApart(t *testing.T) {
	cache := openVolume(t)
	// An outer handler that removes a part of the path, and one that chooses a path by a field.
	inner := httpcache.New(cache, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.RequestURI+" as "+r.URL.RequestURI())
	}), httpcache.Options{DefaultTTL: time.Hour})
	outer := http.NewServeMux()
	outer.Handle("/a/", http.StripPrefix("/a", inner))
	outer.Handle("/b/", http.StripPrefix("/b", inner))
	outer.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/" + r.Header.Get("Accept-Language") + r.URL.Path
		inner.ServeHTTP(w, r)
	})
	for _, status := range []string{"Eyewall; fwd=miss", "Eyewall; hit"} {
		for _, c := range []struct{ target, language, want string }{
			{"/a/page?x=1", "", "/a/page?x=1 as /page?x=1"},
			{"/b/page?x=1", "", "/b/page?x=1 as /page?x=1"},
			{"/page?x=1", "de", "/page?x=1 as /de/page?x=1"},
			{"/page?x=1", "en", "/page?x=1 as /en/page?x=1"},
		} {
			request := httptest.NewRequest("GET", c.target, nil)
			request.Header.Set("Accept-Language", c.language)
			got := httptest.NewRecorder()
			outer.ServeHTTP(got, request)
			if got.Body.String() != c.want || got.Header().Get("Cache-Status") != status {
				t.Errorf("%s in %q: %q, %q", c.target, c.language, got.Body, got.Header())
			}
		}
	}
}

func TestFormsOfAnAddress(t *testing.T) {
	cache := openVolume(t)
	handler := httpcache.New(cache, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "page")
	}), httpcache.Options{DefaultTTL: time.Hour})
	for _, c := range []struct{ host, sent, url, key string }{
		{"a.test", "/x?y", "/x?y", "http://a.test/x?y\n"},
		{"A.test", "http://a.test/x?y", "http://a.test/x?y", "http://a.test/x?y\n"},
		{"a.test", "", "http://a.test/x?y", "http://a.test/x?y\n"},
		{"a.test", "http:x/y", "http:x/y", "http://a.test\tx/y\n"},
		{"a.test", "/v1/x", "/x", "http://a.test/v1/x\t/x\n"},
	} {
		address, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		request := &http.Request{Method: "GET", Host: c.host, URL: address, RequestURI: c.sent, Header: http.Header{}}
		handler.ServeHTTP(httptest.NewRecorder(), request)
		if isThere, err := cache.Delete("http " + c.key); err != nil || !isThere {
			t.Errorf("%s %q: no entry has the key %q, %v", c.host, c.sent, c.key, err)
		}
	}
}
