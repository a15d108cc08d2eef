package eyewall_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"eyewall"
)

func TestAHitKeepsItsBytesWhateverHappens(t *testing.T) {
	cache := open(t, eyewall.Options{Size: 1 << 20})
	want := strings.Repeat("held", 5000)
	put(t, cache, "held", want)
	hit := must(cache.GetHit("held"))
	for i := range 300 {
		if err := cache.Put(fmt.Sprint(i), []byte(strings.Repeat("x", 20_000))); err != nil {
			t.Fatal(err)
		}
	}
	put(t, cache, "held", "another")
	if string(hit.Bytes()) != want {
		t.Fatal("the bytes of a held entry changed")
	}
	// Another goroutine, on whatever thread, releases it.
	released := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		hit.Release()
		hit.Release()
		close(released)
	}()
	<-released
	if hit.Bytes() != nil || hit.Len() != 0 || hit.Key() != "" || hit.Info() != (eyewall.Info{}) {
		t.Fatal("a released hit has bytes")
	}
	_, err := hit.WriteTo(nil)
	wantError(t, errors.Join(err, hit.Check()), eyewall.ErrClosed)
	if pins := must(cache.Stat()).Pins; pins != 0 {
		t.Fatalf("%d pins are left", pins)
	}
}

func TestAGoroutineMayHoldManyHits(t *testing.T) {
	cache := open(t, eyewall.Options{})
	put(t, cache, "key", "value")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 1000 {
		hit := must(cache.GetHit("key"))
		defer hit.Release()
		if string(hit.Bytes()) != "value" {
			t.Fatalf("got %q", hit.Bytes())
		}
	}
}

func TestTheCollectorReleasesForgottenHits(t *testing.T) {
	cache := open(t, eyewall.Options{})
	put(t, cache, "key", "value")
	func() {
		for range 5 {
			must(cache.GetHit("key"))
		}
	}()
	for deadline := time.Now().Add(time.Minute); must(cache.Stat()).Pins > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the hits are still held")
		}
		runtime.GC()
		runtime.Gosched()
	}
}

func TestACacheClosesAfterItsLastUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "volume")
	watch := openAt(t, path, eyewall.Options{})
	cache := openAt(t, path, eyewall.Options{})
	put(t, cache, "key", "value")
	hit := must(cache.GetHit("key"))
	writer := must(cache.NewWriter("other", -1))
	claim := must(cache.Claim("third"))
	if err := cache.Close(); err != nil {
		t.Fatal(err)
	}
	if string(hit.Bytes()) != "value" {
		t.Fatal("a hit lost its bytes when its cache was closed")
	}
	hit.Release()
	must(writer.Commit())
	claim.End()
	wantError(t, cache.Close(), eyewall.ErrClosed)
	wantValue(t, watch, "key", "value")
}

func TestClosedCachesRefuseEveryCall(t *testing.T) {
	cache := open(t, eyewall.Options{})
	cache.Close()
	var refused []error
	note := func(_ any, err error) { refused = append(refused, err) }
	_, _, err := cache.Get("a")
	note(nil, err)
	note(cache.GetHit("a"))
	note(cache.Contains("a"))
	note(nil, cache.Put("a", nil))
	note(cache.Replace("a", 1, nil))
	note(nil, cache.PutNegative("a", 1))
	note(cache.Touch("a", 0, 0))
	note(cache.Increment("a", 1))
	note(nil, cache.PurgeTag("a"))
	note(nil, cache.PurgeAll())
	note(cache.Now())
	note(cache.Stat())
	note(cache.Claim("a"))
	note(cache.NewWriter("a", -1))
	note(nil, cache.PutReader("a", nil, 0))
	note(cache.Fill(t.Context(), "a", nil))
	for _, err := range cache.Iter() {
		note(nil, err)
	}
	if len(refused) != 17 {
		t.Fatalf("%d calls were refused", len(refused))
	}
	for _, err := range refused {
		wantError(t, err, eyewall.ErrClosed)
	}
	if cache.Size() != 0 || cache.EntryBytesMax() != 0 || cache.IsFailed() {
		t.Fatal("a closed cache has properties")
	}
}

func TestACloseBesideOtherCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "volume")
	openAt(t, path, eyewall.Options{})
	for range 20 {
		cache := openAt(t, path, eyewall.Options{})
		began := make(chan struct{}, 4)
		done := make(chan error, 4)
		for worker := range 4 {
			go func() {
				for i := 0; ; i++ {
					err := cache.Put(fmt.Sprint(worker, i%10), []byte("value"))
					if err == nil {
						_, _, err = cache.Get(fmt.Sprint(worker, i%10))
					}
					if err != nil {
						done <- err
						return
					}
					if i == 10 {
						began <- struct{}{}
					}
				}
			}()
		}
		for range 4 {
			select {
			case <-began:
			case err := <-done:
				t.Fatalf("a call failed before the close: %v", err)
			}
		}
		cache.Close()
		for range 4 {
			wantError(t, <-done, eyewall.ErrClosed)
		}
	}
}

func TestErrorsSayWhatHappened(t *testing.T) {
	cache := open(t, eyewall.Options{})
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprint("tag", i)
	}
	put(t, cache, "text", "not a number")
	_, notACounter := cache.Increment("text", 1)
	_, _, empty := cache.Get("")
	_, touch := cache.Touch("a", -1, 0)
	_, increment := cache.Increment("a", 1, eyewall.TTL(-1))
	_, replace := cache.Replace("a", 1, nil, eyewall.TTL(-1))
	_, writer := cache.NewWriter("a", 1, eyewall.Stale(-1))
	for _, c := range []struct {
		err  error
		want eyewall.Code
		name string
	}{
		{empty, eyewall.ErrKeyEmpty, "key_empty"},
		{cache.Put(strings.Repeat("k", 70_000), nil), eyewall.ErrKeyTooLong, "key_too_long"},
		{cache.Put("k", make([]byte, 3<<20)), eyewall.ErrEntryTooLarge, "entry_too_large"},
		{cache.Put("k", nil, eyewall.Metadata(make([]byte, 70_000))), eyewall.ErrMetadataTooLong, "metadata_too_long"},
		{cache.Put("k", nil, eyewall.Tags(many...)), eyewall.ErrTooManyTags, "too_many_tags"},
		{cache.Put("k", nil, eyewall.Tags("")), eyewall.ErrTagLength, "tag_length"},
		{cache.Put("k", nil, eyewall.Tags("\xff")), eyewall.ErrArgument, "argument"},
		{cache.Put("k", nil, eyewall.TTL(-time.Second)), eyewall.ErrArgument, "argument"},
		{cache.PutNegative("k", 1, eyewall.TTL(-time.Second)), eyewall.ErrArgument, "argument"},
		{touch, eyewall.ErrArgument, "argument"},
		{increment, eyewall.ErrArgument, "argument"},
		{replace, eyewall.ErrArgument, "argument"},
		{writer, eyewall.ErrArgument, "argument"},
		{notACounter, eyewall.ErrNotACounter, "not_a_counter"},
	} {
		wantError(t, c.err, c.want)
		var full *eyewall.Error
		if !errors.As(c.err, &full) || full.Code.String() != c.name || len(full.Message) < 10 || !strings.HasPrefix(c.err.Error(), "eyewall: ") {
			t.Fatalf("the error is %v, of code %v", c.err, full)
		}
	}
	if eyewall.ErrBusy.Error() != "eyewall: busy" || eyewall.Code(-99).String() != "code -99" {
		t.Fatal("a code has a wrong name")
	}
}

func TestFilesThatCannotBeOpened(t *testing.T) {
	folder := t.TempDir()
	foreign, volume := folder+"/foreign", folder+"/volume"
	if err := os.WriteFile(foreign, []byte(strings.Repeat("no volume", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	group := uint32(os.Getgid())
	openAt(t, volume, eyewall.Options{
		Size: 8 << 20, EntryBytesMax: 1 << 20, EntrySizeHint: 500, Mode: 0o640, Group: &group, LockDeadline: time.Second,
		SecureErase: true, ClearUnclean: true, PutAsideBroken: true, VerifyHits: true, SurviveSIGBUS: true, Fleet: true,
	})
	if info := must(os.Stat(volume)); info.Mode() != fs.FileMode(0o640) {
		t.Fatalf("the mode is %v", info.Mode())
	}
	for _, c := range []struct {
		path    string
		options eyewall.Options
		want    eyewall.Code
	}{
		{foreign, eyewall.Options{}, eyewall.ErrForeign},
		{folder + "/absent", eyewall.Options{MustExist: true}, eyewall.ErrNotFound},
		{volume, eyewall.Options{Size: 16 << 20}, eyewall.ErrOptionsDiffer},
		{folder + "/small", eyewall.Options{Size: 1}, eyewall.ErrOutOfRange},
		{folder + "/none/volume", eyewall.Options{}, eyewall.ErrIO},
		{"", eyewall.Options{}, eyewall.ErrArgument},
		{"a\x00b", eyewall.Options{}, eyewall.ErrArgument},
		{volume, eyewall.Options{LockDeadline: -1}, eyewall.ErrArgument},
		{volume, eyewall.Options{TierBytes: 1 << 20, TierFolder: "a\x00b"}, eyewall.ErrArgument},
	} {
		_, err := eyewall.Open(c.path, c.options)
		wantError(t, err, c.want)
	}
	tiered, err := eyewall.Open(folder+"/tiered", eyewall.Options{TierBytes: 1 << 20, TierFolder: folder + "/none"})
	wantError(t, err, eyewall.ErrIO)
	if tiered != nil {
		t.Fatal("Open returned a cache and an error")
	}
}
