package httpcache

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stored is a response as the cache has it.
type stored struct {
	status int
	header http.Header
	body   []byte
	// at is when the response was made.
	at time.Time
}

// The fields that belong to a connection, not to the response (RFC 9110, section 7.6.1).
var connectionFields = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

var storableStatuses = []int{200, 203, 204, 300, 301, 308, 404, 410}

// directives parses Cache-Control. A directive that is repeated has its first value.
func directives(header http.Header) map[string]string {
	found := map[string]string{}
	for _, part := range strings.Split(strings.Join(header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.ToLower(name)
		if _, isThere := found[name]; name != "" && !isThere {
			found[name] = strings.Trim(value, `"`)
		}
	}
	return found
}

// freshness is for how long the response may be stored; 0 if it may not.
func (s *stored) freshness(defaultTTL time.Duration) time.Duration {
	says := directives(s.header)
	for _, never := range []string{"no-store", "private", "no-cache"} {
		if _, isThere := says[never]; isThere {
			return 0
		}
	}
	if !slices.Contains(storableStatuses, s.status) || len(s.header.Values("Set-Cookie")) > 0 || slices.Contains(varying(s.header), "*") {
		return 0
	}
	ttl := defaultTTL
	maxAge, hasMaxAge := says["max-age"]
	if shared, isThere := says["s-maxage"]; isThere {
		maxAge, hasMaxAge = shared, true
	}
	if hasMaxAge {
		ttl = seconds(maxAge)
	} else if expires := s.header.Values("Expires"); len(expires) > 0 {
		// A date that can't be read is in the past (RFC 9111, section 5.3).
		at, err := http.ParseTime(expires[0])
		if ttl = at.Sub(s.date()); err != nil {
			ttl = 0
		}
	}
	return ttl - seconds(s.header.Get("Age"))
}

// seconds reads a number of seconds; what isn't one is 0. It ends at 2^31, as RFC 9111 says.
func seconds(text string) time.Duration {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(number, 1<<31)) * time.Second
}

func (s *stored) date() time.Time {
	if date, err := http.ParseTime(s.header.Get("Date")); err == nil {
		return date
	}
	return s.at
}

// format writes status, time and fields as metadata.
func (s *stored) format() []byte {
	header := s.header.Clone()
	for _, field := range header.Values("Connection") {
		for _, name := range strings.Split(field, ",") {
			header.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range connectionFields {
		header.Del(name)
	}
	header.Set("Date", s.date().UTC().Format(http.TimeFormat))
	var to bytes.Buffer
	fmt.Fprintf(&to, "R %d %d\r\n", s.status, s.at.UnixMilli())
	header.Write(&to)
	to.WriteString("\r\n")
	return to.Bytes()
}

var errForeign = errors.New("httpcache: the entry is no response")

// parseStored reads the metadata. The entry may be another program's, so nothing is taken for granted.
func parseStored(metadata []byte) (stored, error) {
	lines := textproto.NewReader(bufio.NewReader(bytes.NewReader(metadata)))
	first, err := lines.ReadLine()
	if err != nil {
		return stored{}, errForeign
	}
	var status int
	var at int64
	if n, err := fmt.Sscanf(first, "R %d %d", &status, &at); n != 2 || err != nil || status < 200 || status > 599 {
		return stored{}, errForeign
	}
	header, err := lines.ReadMIMEHeader()
	if err != nil {
		return stored{}, errForeign
	}
	return stored{status: status, header: http.Header(header), at: time.UnixMilli(at)}, nil
}

// send sends the response to a client, or 304 if the client has it.
func (s *stored) send(w http.ResponseWriter, r *http.Request, cacheStatus string) {
	header := w.Header()
	maps.Copy(header, s.header)
	header.Add("Cache-Status", "Eyewall; "+cacheStatus)
	if cacheStatus == "hit" {
		age := max(time.Since(s.at), 0) + seconds(s.header.Get("Age"))
		header.Set("Age", strconv.FormatInt(int64(age/time.Second), 10))
	}
	if s.status == http.StatusOK && s.isUnchanged(r) {
		header.Del("Content-Length")
		header.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	hasBody := s.status != http.StatusNoContent
	if hasBody && header.Get("Content-Length") == "" {
		header.Set("Content-Length", strconv.Itoa(len(s.body)))
	}
	w.WriteHeader(s.status)
	if hasBody && r.Method != http.MethodHead {
		w.Write(s.body)
	}
}

// isUnchanged evaluates If-None-Match and, without it, If-Modified-Since (RFC 9110, section 13.2.2).
func (s *stored) isUnchanged(r *http.Request) bool {
	if asked := r.Header.Values("If-None-Match"); len(asked) > 0 {
		tag := strings.TrimPrefix(s.header.Get("Etag"), "W/")
		for _, one := range strings.Split(strings.Join(asked, ","), ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || tag != "" && one == tag {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
	if err != nil {
		return false
	}
	modified, err := http.ParseTime(s.header.Get("Last-Modified"))
	return err == nil && !modified.After(since)
}

// varying returns the names in Vary, in their order and form for keys.
func varying(header http.Header) []string {
	var names []string
	for _, name := range strings.Split(strings.Join(header.Values("Vary"), ","), ",") {
		if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isSubset(names, of []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(of, name) })
}

// variants is the entry of a primary key whose responses vary: by which fields, and a part of the variants' keys.
type variants struct {
	id    string
	names []string
}

func (v variants) format() []byte {
	return []byte("V " + v.id + " " + strings.Join(v.names, ","))
}

func parseMarker(metadata []byte) (variants, bool) {
	words := strings.Split(string(metadata), " ")
	if len(words) != 3 || words[0] != "V" {
		return variants{}, false
	}
	return variants{words[1], strings.Split(words[2], ",")}, true
}

// key is the part of a variant's key that follows the primary key.
func (v variants) key(r *http.Request) string {
	var key strings.Builder
	key.WriteString(v.id)
	for _, name := range v.names {
		// Quoted, so that no value can look like another field.
		fmt.Fprintf(&key, "\n%s:%q", name, r.Header.Values(name))
	}
	return key.String()
}
