// Package httpcache caches the responses of an [http.Handler] in a volume that all processes of the machine share.
//
//	http.ListenAndServe(":8080", httpcache.New(cache, mux, httpcache.Options{}))
//
// It is a small shared cache by the most important rules of RFC 9111, for a program that is the origin itself. For more
// rules (ranges, revalidation, stale responses, large bodies, compression) put `eyewall serve` in front of the program.
//
// It stores a response to GET if all of this holds:
//
//   - The status is 200, 203, 204, 300, 301, 308, 404 or 410.
//   - s-maxage, max-age or Expires says that it is fresh, or nothing does and [Options.DefaultTTL] is set.
//   - Cache-Control has none of no-store, private and no-cache.
//   - There is no Set-Cookie, and Vary is not *.
//   - The body has at most [Options.BodyBytesMax] bytes, and as many as Content-Length says if it is there. The handler
//     doesn't flush it.
//
// The handler doesn't see requests for GET and HEAD that a stored response answers, whatever their cookies: a handler
// whose response depends on a field of the request has to name the field in Vary, or to send `Cache-Control: private`.
// Requests with Authorization, Range, Upgrade, or `Cache-Control: no-store` go to the handler. The other directives of
// requests are advice, which the cache doesn't follow. A request by another method, such as POST, goes to the handler.
// If it succeeds, it removes the stored responses of its address.
//
// Concurrent requests for one response, in all processes, cost one call of the handler. If its response can't be
// stored, the requests that waited call it themselves, and those of the next seconds don't wait.
//
// A hit has Age and Cache-Status, and answers If-None-Match and If-Modified-Since with 304.
package httpcache

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"eyewall"
)

// Options has the settings of a cache. The zero value has the defaults.
type Options struct {
	// KeyPrefix is the beginning of all keys, to tell them from the other entries of the volume. Empty: "http ".
	KeyPrefix string
	// DefaultTTL is for how long responses are fresh that don't say so themselves. 0: they aren't stored.
	DefaultTTL time.Duration
	// BodyBytesMax is the largest body that is stored. Each running miss holds so many bytes. 0: 1 MiB.
	BodyBytesMax int
	// Tags returns the tags of a response, by which a program purges it. nil: none.
	Tags func(request *http.Request, header http.Header) []string
}

// notStoredTTL is for how long requests for a response that couldn't be stored don't wait for each other.
const notStoredTTL = 5 * time.Second

// errNotStored tells the requests that wait for a response that it can't be stored.
var errNotStored = &eyewall.NegativeError{TTL: notStoredTTL}

type handler struct {
	cache   *eyewall.Cache
	next    http.Handler
	options Options
}

// New returns a handler that answers from the cache, or by next. If the volume fails, it answers by next.
func New(cache *eyewall.Cache, next http.Handler, options Options) http.Handler {
	if options.KeyPrefix == "" {
		options.KeyPrefix = "http "
	}
	if options.BodyBytesMax == 0 {
		options.BodyBytesMax = 1 << 20
	}
	return &handler{cache, next, options}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		h.next.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.change(w, r)
	case isPassed(r):
		h.next.ServeHTTP(w, r)
	default:
		h.answer(w, r, h.key(r), nil)
	}
}

// isPassed says whether a GET or HEAD is none of the cache's business.
func isPassed(r *http.Request) bool {
	for _, name := range []string{"Authorization", "Range", "Upgrade"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	_, isNoStore := directives(r.Header)["no-store"]
	return isNoStore
}

// key is the primary key. Its parts are separated by control characters, which no URL has: a line feed stands before
// the fields of a variant.
func (h *handler) key(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return h.options.KeyPrefix + scheme + strings.ToLower(r.Host) + target(r) + "\n"
}

// target is the path and query that the client sent. If an outer handler rewrote the URL, for instance
// [http.StripPrefix], the new ones follow: neither may name the response of another request.
func target(r *http.Request) string {
	sent, rewritten := r.RequestURI, r.URL.RequestURI()
	if !strings.HasPrefix(sent, "/") {
		// The client sent a whole URL, as to a proxy. Or the program made the request, and RequestURI is empty.
		whole, err := url.ParseRequestURI(sent)
		if sent = rewritten; err == nil {
			sent = whole.RequestURI()
		}
	}
	if sent != rewritten {
		sent += "\t" + rewritten
	}
	if !strings.HasPrefix(sent, "/") {
		return "\t" + sent // As in "http:a/b". It would look like a part of the host.
	}
	return sent
}

// answer answers by the entry of a key: of the primary one, or of a variant, whose key has the named fields of the
// request. For the primary key, names is nil.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, key string, names []string) {
	if h.answerStored(w, r, key, names) {
		return
	}
	if r.Method == http.MethodHead {
		h.next.ServeHTTP(w, r)
		return
	}
	// A purge from here on applies to the response.
	begun, err := h.cache.Now()
	if err != nil {
		h.next.ServeHTTP(w, r)
		return
	}
	var led *recorder
	_, err = h.cache.Fill(r.Context(), key, func(ctx context.Context) (eyewall.Value, error) {
		led = record(w, r, h.next, h.options.BodyBytesMax)
		<-led.decided
		return h.value(ctx, r, led, begun, names)
	})
	switch {
	case led != nil:
		led.finish(w, r)
	case err == nil && h.answerStored(w, r, key, names):
	case r.Context().Err() == nil:
		h.next.ServeHTTP(w, r)
	}
}

// answerStored says whether it answered. If the response isn't stored, or the requests for it don't wait, the request
// is answered only in the second case.
func (h *handler) answerStored(w http.ResponseWriter, r *http.Request, key string, names []string) bool {
	hit, err := h.cache.Lookup(key)
	if err != nil {
		h.next.ServeHTTP(w, r)
		return true
	}
	if hit == nil {
		return false
	}
	info := hit.Info()
	if info.IsNegative || info.IsStale {
		hit.Release()
		if info.IsNegative {
			h.next.ServeHTTP(w, r)
		}
		return info.IsNegative
	}
	metadata := hit.Metadata()
	if variant, isMarker := parseMarker(metadata); isMarker && names == nil {
		hit.Release()
		h.answer(w, r, key+variant.key(r), variant.names)
		return true
	}
	stored, err := parseStored(metadata)
	// Copied, since a slow client would hold the entry for as long as it likes.
	stored.body = append([]byte(nil), hit.Bytes()...)
	err = errors.Join(err, hit.Check())
	hit.Release()
	if err != nil {
		return false
	}
	stored.send(w, r, "hit")
	return true
}

// value is the entry for a response. A response with Vary is stored under the key of its variant, and the primary key
// gets the names of the fields. A variant's response mustn't vary by more fields than its key has, or other clients
// would get it. So value removes the primary key then: the next response names the fields again.
func (h *handler) value(ctx context.Context, r *http.Request, led *recorder, begun eyewall.Epoch, names []string) (eyewall.Value, error) {
	if err := ctx.Err(); err != nil {
		return eyewall.Value{}, err
	}
	stored, ttl := led.storable(h.options.DefaultTTL)
	if ttl <= 0 {
		return eyewall.Value{}, errNotStored
	}
	varies := varying(stored.header)
	if names != nil && !isSubset(varies, names) {
		// If the removal fails, the next such response tries it again.
		h.cache.Delete(h.key(r))
		return eyewall.Value{}, errNotStored
	}
	value := eyewall.Value{Bytes: stored.body, Metadata: stored.format(), TTL: ttl}
	if h.options.Tags != nil {
		value.Tags = h.options.Tags(r, stored.header)
	}
	if names != nil || len(varies) == 0 {
		return value, nil
	}
	variant := variants{id: rand.Text(), names: varies}
	err := h.cache.Put(h.key(r)+variant.key(r), value.Bytes, eyewall.TTL(ttl), eyewall.Metadata(value.Metadata),
		eyewall.Tags(value.Tags...), eyewall.BegunIn(begun))
	if err != nil {
		return eyewall.Value{}, errNotStored
	}
	return eyewall.Value{Metadata: variant.format(), TTL: ttl, Tags: value.Tags}, nil
}

// change passes a request that may change what its address means. If it succeeds, its stored responses are removed: a
// new entry of the primary key gives the variants new keys.
func (h *handler) change(w http.ResponseWriter, r *http.Request) {
	status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	h.next.ServeHTTP(status, r)
	if isSafe := r.Method == http.MethodOptions || r.Method == http.MethodTrace; !isSafe && status.status < 400 {
		h.cache.Delete(h.key(r))
	}
}
