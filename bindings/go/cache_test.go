package eyewall_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"eyewall"
)

// lockDeadline is for tests that mean no other one: a loaded machine may stop the owner of a lock for longer than the
// default of a second.
const lockDeadline = time.Minute

// open opens a new volume in an empty folder, for the length of the test.
func open(t testing.TB, options eyewall.Options) *eyewall.Cache {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "volume"), options)
}

func openAt(t testing.TB, path string, options eyewall.Options) *eyewall.Cache {
	t.Helper()
	if options.Size == 0 && !options.MustExist && !options.ReadOnly {
		options.Size = 4 << 20
	}
	if options.LockDeadline == 0 {
		options.LockDeadline = lockDeadline
	}
	cache, err := eyewall.Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	return cache
}

// must returns the value of a call that may not fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func wantValue(t *testing.T, cache *eyewall.Cache, key, want string) {
	t.Helper()
	if value, isThere, err := cache.Get(key); err != nil || !isThere || string(value) != want {
		t.Fatalf("Get(%q) = %.40q, %v, %v; want %.40q", key, value, isThere, err, want)
	}
}

func wantMiss(t *testing.T, cache *eyewall.Cache, key string) {
	t.Helper()
	if value, isThere, err := cache.Get(key); err != nil || isThere {
		t.Fatalf("Get(%q) = %.40q, %v, %v; want a miss", key, value, isThere, err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got the error %v, want %v", err, want)
	}
}

func put(t *testing.T, cache *eyewall.Cache, key, value string, options ...eyewall.PutOption) {
	t.Helper()
	if err := cache.Put(key, []byte(value), options...); err != nil {
		t.Fatal(err)
	}
}

func TestValuesOfAnySizeComeBack(t *testing.T) {
	cache := open(t, eyewall.Options{Size: 32 << 20})
	for _, size := range []int{0, 1, 465, 4095, 4096, 4097, 100_000, 1 << 20} {
		want := strings.Repeat("x", size)
		put(t, cache, "key", want)
		wantValue(t, cache, "key", want)

		appended, isThere, err := cache.GetAppend([]byte("before "), "key")
		if err != nil || !isThere || string(appended) != "before "+want {
			t.Fatalf("GetAppend of %d bytes: %d bytes, %v, %v", size, len(appended), isThere, err)
		}
		roomy := make([]byte, 0, size+8192)
		appended, _, err = cache.GetAppend(roomy, "key")
		if err != nil || string(appended) != want || &appended[:1][0] != &roomy[:1][0] {
			t.Fatalf("GetAppend of %d bytes didn't use the room", size)
		}
	}
	if value, isThere, err := cache.GetAppend([]byte("kept"), "absent"); err != nil || isThere || string(value) != "kept" {
		t.Fatalf("GetAppend of an absent key: %q, %v, %v", value, isThere, err)
	}
	value, _, _ := cache.Get("absent")
	if value != nil {
		t.Fatal("a miss has a value")
	}
}

func TestALargeGetCountsOnce(t *testing.T) {
	cache := open(t, eyewall.Options{})
	put(t, cache, "large", strings.Repeat("x", 50_000))
	before := must(cache.Stat())
	wantValue(t, cache, "large", strings.Repeat("x", 50_000))
	if after := must(cache.Stat()); after.Hits != before.Hits+1 || after.Entries != 1 || after.SizeBytes != cache.Size() {
		t.Fatalf("hits went from %d to %d; %d entries; %d bytes", before.Hits, after.Hits, after.Entries, after.SizeBytes)
	}
}

func TestKeysMayHaveAnyBytes(t *testing.T) {
	cache := open(t, eyewall.Options{})
	for _, key := range []string{"\x00", "a\x00b", "\xff\xfe", "ключ", strings.Repeat("k", 60_000)} {
		put(t, cache, key, "value of "+key)
		wantValue(t, cache, key, "value of "+key)
	}
}

func TestChangesSayWhatTheyDid(t *testing.T) {
	cache := open(t, eyewall.Options{})
	if must(cache.Delete("a")) || must(cache.Contains("a")) || !must(cache.Add("a", []byte("1"))) {
		t.Fatal("an absent key looks present")
	}
	if must(cache.Add("a", []byte("2"))) || !must(cache.Contains("a")) {
		t.Fatal("a present key looks absent")
	}
	hit := must(cache.GetHit("a"))
	serial := hit.Info().Serial
	hit.Release()
	if must(cache.Replace("a", serial+1000, []byte("3"))) || !must(cache.Replace("a", serial, []byte("4"))) {
		t.Fatal("Replace looks at another serial")
	}
	wantValue(t, cache, "a", "4")
	if must(cache.Increment("n", 41)) != 41 || must(cache.Increment("n", 1)) != 42 || must(cache.Increment("n", -50)) != -8 {
		t.Fatal("the counter counts wrong")
	}
	if !must(cache.Delete("a")) {
		t.Fatal("Delete missed the entry")
	}
	if err := cache.Clear(); err != nil {
		t.Fatal(err)
	}
	wantMiss(t, cache, "n")
}

func TestOptionsOfAPutAreStored(t *testing.T) {
	cache := open(t, eyewall.Options{})
	put(t, cache, "page", "<h1>", eyewall.TTL(time.Hour), eyewall.Stale(time.Minute), eyewall.Tags("news", "été"), eyewall.Metadata([]byte("text/html")))
	hit := must(cache.Lookup("page"))
	defer hit.Release()
	info := hit.Info()
	if hit.Key() != "page" || string(hit.Metadata()) != "text/html" || fmt.Sprint(hit.Tags()) != "[news été]" {
		t.Fatalf("got %q, %q, %q", hit.Key(), hit.Metadata(), hit.Tags())
	}
	if info.TTLLeft > time.Hour || info.TTLLeft < 50*time.Minute || info.UsableLeft < info.TTLLeft || info.IsStale || info.IsNegative || !info.IsIntact {
		t.Fatalf("got %+v", info)
	}
	if age := time.Since(info.Created); age < -time.Hour || age > time.Hour {
		t.Fatalf("created %v ago", age)
	}
	put(t, cache, "plain", "x")
	plain := must(cache.GetHit("plain"))
	defer plain.Release()
	if plain.Info().TTLLeft != eyewall.Forever || len(plain.Tags()) != 0 || len(plain.Metadata()) != 0 {
		t.Fatalf("got %+v", plain.Info())
	}
}

func TestPurgesRemoveOrMakeStale(t *testing.T) {
	cache := open(t, eyewall.Options{})
	fill := func() {
		put(t, cache, "/a", "a", eyewall.Tags("t"), eyewall.TTL(time.Hour), eyewall.Stale(time.Hour))
		put(t, cache, "/b", "b", eyewall.TTL(time.Hour), eyewall.Stale(time.Hour))
	}
	purges := []struct {
		hard, soft func() error
		isB        bool
	}{
		{func() error { return cache.PurgeTag("t") }, func() error { return cache.SoftPurgeTag("t") }, false},
		{func() error { return cache.PurgePrefix("/a") }, func() error { return cache.SoftPurgePrefix("/a") }, false},
		{cache.PurgeAll, cache.SoftPurgeAll, true},
	}
	for _, purge := range purges {
		fill()
		if err := purge.soft(); err != nil {
			t.Fatal(err)
		}
		wantMiss(t, cache, "/a")
		stale := must(cache.Lookup("/a"))
		if stale == nil || !stale.Info().IsStale || string(stale.Bytes()) != "a" {
			t.Fatal("a soft purge removed the entry")
		}
		stale.Release()
		fill()
		if err := purge.hard(); err != nil {
			t.Fatal(err)
		}
		if hit := must(cache.Lookup("/a")); hit != nil {
			t.Fatal("a hard purge left the entry")
		}
		if must(cache.Contains("/b")) == purge.isB {
			t.Fatal("the purge removed too much or too little")
		}
	}
	epoch := must(cache.Now())
	if err := cache.PurgeTag("t"); err != nil {
		t.Fatal(err)
	}
	put(t, cache, "/a", "old", eyewall.Tags("t"), eyewall.BegunIn(epoch))
	wantMiss(t, cache, "/a")
	if err := errors.Join(cache.Sweep(), cache.Sync()); err != nil {
		t.Fatal(err)
	}
}

func TestNegativeEntriesHaveAReason(t *testing.T) {
	cache := open(t, eyewall.Options{})
	if err := cache.PutNegative("gone", 410, eyewall.TTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantMiss(t, cache, "gone")
	hit := must(cache.Lookup("gone"))
	defer hit.Release()
	if info := hit.Info(); !info.IsNegative || info.Reason != 410 {
		t.Fatalf("got %+v", info)
	}
	if must(cache.Touch("absent", time.Hour, 0)) {
		t.Fatal("Touch found an absent entry")
	}
	put(t, cache, "page", "x", eyewall.TTL(time.Minute))
	if !must(cache.Touch("page", 10*time.Hour, 0)) {
		t.Fatal("Touch found nothing")
	}
	page := must(cache.GetHit("page"))
	defer page.Release()
	if page.Info().TTLLeft < 5*time.Hour {
		t.Fatalf("the TTL is %v", page.Info().TTLLeft)
	}
}

func TestReadersAndWriters(t *testing.T) {
	cache := open(t, eyewall.Options{Size: 32 << 20})
	want := strings.Repeat("0123456789", 30_000)
	for _, size := range []int64{int64(len(want)), -1} {
		if err := cache.PutReader("doc", strings.NewReader(want), size, eyewall.Tags("docs")); err != nil {
			t.Fatal(err)
		}
		reader := must(cache.GetHit("doc")).Reader()
		if got := must(io.ReadAll(reader)); string(got) != want {
			t.Fatalf("read %d bytes", len(got))
		}
		must(reader.Seek(-10, io.SeekEnd))
		if got := must(io.ReadAll(reader)); string(got) != "0123456789" {
			t.Fatalf("read %q", got)
		}
		reader.Close()
		if got := must(io.ReadAll(reader)); len(got) != 0 {
			t.Fatal("a closed reader reads")
		}
	}
	hit := must(cache.GetHit("doc"))
	var to bytes.Buffer
	if n, err := hit.WriteTo(&to); err != nil || n != int64(len(want)) || to.String() != want || hit.Len() != len(want) {
		t.Fatalf("wrote %d bytes, %v", n, err)
	}
	if err := errors.Join(hit.Check(), hit.Close()); err != nil {
		t.Fatal(err)
	}

	broken := errors.New("broken")
	for _, c := range []struct {
		reader io.Reader
		size   int64
		want   error
	}{
		{io.MultiReader(strings.NewReader("part"), failing{broken}), -1, broken},
		{strings.NewReader("short"), 10, io.ErrUnexpectedEOF},
		{strings.NewReader("long"), 2, nil},
	} {
		err := cache.PutReader("doc", c.reader, c.size)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Fatalf("got %v, want %v", err, c.want)
		}
		wantValue(t, cache, "doc", want)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWritersAndClaimsAreSuperseded(t *testing.T) {
	cache := open(t, eyewall.Options{LockDeadline: 10 * time.Millisecond})
	writer := must(cache.NewWriter("a", -1))
	must(writer.Write([]byte("from the writer")))
	_, err := cache.Claim("a")
	wantError(t, err, eyewall.ErrBusy)
	put(t, cache, "a", "from a put")
	if must(writer.Commit()) {
		t.Fatal("the writer wasn't superseded")
	}
	wantValue(t, cache, "a", "from a put")
	writer.Close()
	_, err = writer.Commit()
	wantError(t, err, eyewall.ErrClosed)
	_, err = writer.Write(nil)
	wantError(t, err, eyewall.ErrClosed)

	aborted := must(cache.NewWriter("a", 3))
	must(aborted.Write([]byte("abc")))
	aborted.Close()
	wantValue(t, cache, "a", "from a put")

	claim := must(cache.Claim("a"))
	if value, isThere := claim.Value(); !isThere || string(value) != "from a put" {
		t.Fatalf("the claim found %q, %v", value, isThere)
	}
	if !must(claim.Put([]byte("from the claim"), eyewall.TTL(time.Hour))) {
		t.Fatal("the claim was superseded")
	}
	wantValue(t, cache, "a", "from the claim")
	_, err = claim.Put(nil)
	wantError(t, err, eyewall.ErrClosed)
	claim.End()

	claim = must(cache.Claim("a"))
	put(t, cache, "a", "from another put")
	if must(claim.Remove()) {
		t.Fatal("the claim wasn't superseded")
	}
	claim = must(cache.Claim("a"))
	if !must(claim.Remove()) {
		t.Fatal("the claim was superseded")
	}
	claim = must(cache.Claim("a"))
	if _, isThere := claim.Value(); isThere {
		t.Fatal("the removed entry is there")
	}
	_, err = claim.Put([]byte("x"), eyewall.TTL(-1))
	wantError(t, err, eyewall.ErrArgument)
	must(cache.Claim("a")).End()
}

func TestIterationsMeetEveryEntry(t *testing.T) {
	cache := open(t, eyewall.Options{})
	for i := range 500 {
		put(t, cache, fmt.Sprint("key ", i), fmt.Sprint("value ", i))
	}
	if err := cache.PutNegative("gone", 1); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for hit, err := range cache.Iter() {
		if err != nil {
			t.Fatal(err)
		}
		seen[hit.Key()] = string(hit.Bytes())
	}
	if len(seen) != 500 || seen["key 7"] != "value 7" {
		t.Fatalf("met %d entries", len(seen))
	}
	count := 0
	for hit := range cache.IterAll() {
		if count++; hit.Info().IsNegative {
			break
		}
	}
	if count == 0 {
		t.Fatal("met nothing")
	}
	if pins := must(cache.Stat()).Pins; pins != 0 {
		t.Fatalf("%d pins are left", pins)
	}
}

func TestManyGoroutinesReadWholeValues(t *testing.T) {
	cache := open(t, eyewall.Options{Size: 2 << 20})
	var group sync.WaitGroup
	for worker := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 3000 {
				key := fmt.Sprint("key ", (i*7+worker)%200)
				value, isThere, err := cache.Get(key)
				switch {
				case err != nil:
					t.Error(err)
				case isThere && !bytes.Equal(value, valueOf(key)):
					t.Errorf("%s has a wrong value", key)
				case !isThere || i%5 == 0:
					if err := cache.Put(key, valueOf(key)); err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	group.Wait()
}

// valueOf is the only right value of a key. Its length depends on the key.
func valueOf(key string) []byte {
	return []byte(strings.Repeat(key+";", 1+len(key)*int(key[len(key)-1]-'0'+1)*20))
}

func TestOnlyReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "volume")
	put(t, openAt(t, path, eyewall.Options{}), "key", "value")
	reader := openAt(t, path, eyewall.Options{ReadOnly: true})
	wantValue(t, reader, "key", "value")
	hit := must(reader.GetHit("key"))
	defer hit.Release()
	if string(hit.Bytes()) != "value" || !hit.Info().IsCopy {
		t.Fatalf("got %q, %+v", hit.Bytes(), hit.Info())
	}
	wantError(t, reader.Put("key", nil), eyewall.ErrReadOnly)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the volume's mode is %v, %v", info.Mode(), err)
	}
}
