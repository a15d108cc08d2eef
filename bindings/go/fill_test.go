package eyewall_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eyewall"
)

// together runs the work in several goroutines at once.
func together(count int, work func(i int)) {
	var group sync.WaitGroup
	for i := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			work(i)
		}()
	}
	group.Wait()
}

func TestGoroutinesMakeAValueOnce(t *testing.T) {
	cache := open(t, eyewall.Options{})
	var made atomic.Int32
	together(50, func(int) {
		value, err := cache.Fill(t.Context(), "page", func(context.Context) (eyewall.Value, error) {
			made.Add(1)
			return eyewall.Value{Bytes: []byte("page"), TTL: time.Hour, Tags: []string{"news"}, Metadata: []byte("m")}, nil
		})
		if err != nil || string(value) != "page" {
			t.Errorf("Fill = %q, %v", value, err)
		}
		value[0] = 'X' // It is a copy of the caller's own.
	})
	if made.Load() != 1 {
		t.Fatalf("the value was made %d times", made.Load())
	}
	hit := must(cache.GetHit("page"))
	defer hit.Release()
	if string(hit.Bytes()) != "page" || hit.Tags()[0] != "news" || string(hit.Metadata()) != "m" || hit.Info().TTLLeft > time.Hour {
		t.Fatalf("stored %q, %q", hit.Bytes(), hit.Tags())
	}
}

// waiters starts goroutines that wait for a flight of the key, which the test holds up.
func waiters(t *testing.T, cache *eyewall.Cache, count int, result func() (eyewall.Value, error)) (*atomic.Int32, []error) {
	var made atomic.Int32
	errs := make([]error, count)
	together(count, func(i int) {
		_, errs[i] = cache.Fill(t.Context(), "key", func(context.Context) (eyewall.Value, error) {
			made.Add(1)
			return result()
		})
	})
	return &made, errs
}

func TestErrorsOfAFill(t *testing.T) {
	cache := open(t, eyewall.Options{})
	broken := errors.New("broken")
	_, errs := waiters(t, cache, 20, func() (eyewall.Value, error) { return eyewall.Value{}, broken })
	for _, err := range errs {
		wantError(t, err, broken)
	}
	wantMiss(t, cache, "key")

	_, err := cache.Fill(t.Context(), "key", func(context.Context) (eyewall.Value, error) {
		return eyewall.Value{}, fmt.Errorf("the page is gone: %w", &eyewall.NegativeError{Reason: 410, TTL: time.Hour})
	})
	if err == nil || !strings.HasPrefix(err.Error(), "the page is gone") {
		t.Fatalf("got %v", err)
	}
	made, errs := waiters(t, cache, 5, func() (eyewall.Value, error) { return eyewall.Value{}, nil })
	for _, err := range errs {
		var negative *eyewall.NegativeError
		if !errors.As(err, &negative) || negative.Reason != 410 || negative.Error() != "eyewall: there is no value, for reason 410" {
			t.Fatalf("got %v", err)
		}
	}
	if made.Load() != 0 {
		t.Fatal("the negative entry was made again")
	}
}

func TestAValueThatCannotBeStoredIsReturned(t *testing.T) {
	cache := open(t, eyewall.Options{})
	large := strings.Repeat("x", 3<<20)
	var refused error
	for range 2 {
		value, err := cache.Fill(t.Context(), "large", func(context.Context) (eyewall.Value, error) {
			return eyewall.Value{Bytes: []byte(large)}, nil
		}, eyewall.OnStoreError(func(err error) { refused = err }))
		if err != nil || string(value) != large {
			t.Fatalf("Fill = %d bytes, %v", len(value), err)
		}
		wantError(t, refused, eyewall.ErrEntryTooLarge)
	}
	_, err := cache.Fill(t.Context(), "bad", func(context.Context) (eyewall.Value, error) {
		return eyewall.Value{TTL: -1}, nil
	}, eyewall.OnStoreError(func(err error) { refused = err }))
	wantError(t, errors.Join(err, refused), eyewall.ErrArgument)
}

// A goroutine that makes a value, and that the test ends as it likes.
type maker struct{ began, end, ended chan struct{} }

func newMaker() maker {
	return maker{make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

func TestAMakerThatPanicsOrIsCancelledIsSucceeded(t *testing.T) {
	cache := open(t, eyewall.Options{})
	for key, work := range map[string]func(ctx context.Context, cancel func()) (eyewall.Value, error){
		"panic": func(context.Context, func()) (eyewall.Value, error) { panic("at the maker's") },
		"cancel": func(ctx context.Context, cancel func()) (eyewall.Value, error) {
			cancel()
			return eyewall.Value{}, ctx.Err()
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m := newMaker()
		go func() {
			defer close(m.ended)
			defer func() { recover() }()
			cache.Fill(ctx, key, func(ctx context.Context) (eyewall.Value, error) {
				close(m.began)
				<-m.end
				return work(ctx, cancel)
			})
		}()
		<-m.began
		got := make(chan string)
		go func() {
			value, err := cache.Fill(context.Background(), key, func(context.Context) (eyewall.Value, error) {
				return eyewall.Value{Bytes: []byte("by the heir")}, nil
			})
			got <- fmt.Sprintf("%s %v", value, err)
		}()
		close(m.end)
		<-m.ended
		if g := <-got; g != "by the heir <nil>" {
			t.Fatalf("%s: %s", key, g)
		}
	}
}

func TestAPurgeDuringAFillIsObeyed(t *testing.T) {
	cache := open(t, eyewall.Options{})
	m := newMaker()
	first := make(chan string)
	go func() {
		value, err := cache.Fill(context.Background(), "key", func(context.Context) (eyewall.Value, error) {
			close(m.began)
			<-m.end
			return eyewall.Value{Bytes: []byte("old"), Tags: []string{"t"}}, nil
		})
		first <- fmt.Sprintf("%s %v", value, err)
	}()
	<-m.began
	if err := cache.PurgeTag("t"); err != nil {
		t.Fatal(err)
	}
	second := make(chan string)
	go func() {
		value, err := cache.Fill(context.Background(), "key", func(context.Context) (eyewall.Value, error) {
			return eyewall.Value{Bytes: []byte("new"), Tags: []string{"t"}}, nil
		})
		second <- fmt.Sprintf("%s %v", value, err)
	}()
	close(m.end)
	if a, b := <-first, <-second; a != "old <nil>" || b != "new <nil>" {
		t.Fatalf("got %s and %s", a, b)
	}
	wantValue(t, cache, "key", "new")
}

func TestStaleValuesAreUsedDuringARenewal(t *testing.T) {
	cache := open(t, eyewall.Options{})
	put(t, cache, "key", "stale", eyewall.TTL(time.Hour), eyewall.Stale(time.Hour))
	if err := cache.SoftPurgeAll(); err != nil {
		t.Fatal(err)
	}
	renewal := must(cache.Claim("key"))
	value, err := cache.Fill(t.Context(), "key", func(context.Context) (eyewall.Value, error) {
		t.Error("the claim's owner renews the value")
		return eyewall.Value{}, nil
	}, eyewall.UseStale())
	if err != nil || string(value) != "stale" {
		t.Fatalf("Fill = %q, %v", value, err)
	}
	renewal.End()
	value, err = cache.Fill(t.Context(), "key", func(context.Context) (eyewall.Value, error) {
		return eyewall.Value{Bytes: []byte("fresh")}, nil
	}, eyewall.UseStale())
	if err != nil || string(value) != "fresh" {
		t.Fatalf("Fill = %q, %v", value, err)
	}
}

func TestStaleValuesAreUsedWhileAGoroutineRenewsThem(t *testing.T) {
	cache := open(t, eyewall.Options{})
	m := newMaker()
	go func() {
		defer close(m.ended)
		cache.Fill(t.Context(), "key", func(context.Context) (eyewall.Value, error) {
			close(m.began)
			<-m.end
			return eyewall.Value{Bytes: []byte("fresh")}, nil
		})
	}()
	<-m.began
	defer func() {
		close(m.end)
		<-m.ended
	}()
	put(t, cache, "key", "stale", eyewall.TTL(time.Hour), eyewall.Stale(time.Hour))
	if err := cache.SoftPurgeAll(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if value, err := cache.Fill(ctx, "key", nil, eyewall.UseStale()); err != nil || string(value) != "stale" {
		t.Fatalf("Fill = %q, %v", value, err)
	}

	// There is no value to use. So the call waits, until its context ends.
	if err := cache.PutNegative("key", 410, eyewall.TTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err := cache.Fill(ctx, "key", nil, eyewall.UseStale())
	wantError(t, err, context.Canceled)
}

func TestManyKeysAreFilledAtOnce(t *testing.T) {
	cache := open(t, eyewall.Options{Size: 32 << 20})
	var made atomic.Int32
	together(1000, func(i int) {
		key := fmt.Sprint(i % 100)
		value, err := cache.Fill(t.Context(), key, func(context.Context) (eyewall.Value, error) {
			made.Add(1)
			return eyewall.Value{Bytes: []byte(key)}, nil
		})
		if err != nil || string(value) != key {
			t.Errorf("Fill(%s) = %q, %v", key, value, err)
		}
	})
	if made.Load() != 100 {
		t.Fatalf("%d values were made", made.Load())
	}
}
