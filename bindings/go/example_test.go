package eyewall_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eyewall"
)

// example opens a volume in an empty folder. The second function closes it and removes the folder.
func example() (*eyewall.Cache, func()) {
	folder, err := os.MkdirTemp("", "eyewall")
	if err != nil {
		log.Fatal(err)
	}
	cache, err := eyewall.Open(filepath.Join(folder, "pages"), eyewall.Options{Size: 4 << 20})
	if err != nil {
		log.Fatal(err)
	}
	return cache, func() { cache.Close(); os.RemoveAll(folder) }
}

func ExampleCache_Get() {
	cache, end := example()
	defer end()
	if err := cache.Put("/about", []byte("<h1>About</h1>"), eyewall.TTL(time.Hour), eyewall.Tags("pages")); err != nil {
		log.Fatal(err)
	}
	if page, isThere, err := cache.Get("/about"); err == nil && isThere {
		fmt.Println(string(page))
	}
	// Output: <h1>About</h1>
}

func ExampleCache_Fill() {
	cache, end := example()
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 2 {
		page, err := cache.Fill(ctx, "/news", func(context.Context) (eyewall.Value, error) {
			fmt.Println("asks the database")
			return eyewall.Value{Bytes: []byte("<h1>News</h1>"), TTL: time.Minute, Tags: []string{"news"}}, nil
		})
		fmt.Println(string(page), err)
	}
	// Output:
	// asks the database
	// <h1>News</h1> <nil>
	// <h1>News</h1> <nil>
}

func ExampleNegativeError() {
	cache, end := example()
	defer end()
	for range 2 {
		_, err := cache.Fill(context.Background(), "/nobody", func(context.Context) (eyewall.Value, error) {
			fmt.Println("asks the database")
			return eyewall.Value{}, &eyewall.NegativeError{Reason: 404, TTL: time.Minute}
		})
		var negative *eyewall.NegativeError
		fmt.Println(errors.As(err, &negative), negative.Reason)
	}
	// Output:
	// asks the database
	// true 404
	// true 404
}

func ExampleHit() {
	cache, end := example()
	defer end()
	if err := cache.PutReader("/feed", strings.NewReader("<rss/>"), -1, eyewall.Metadata([]byte("text/xml"))); err != nil {
		log.Fatal(err)
	}
	hit, err := cache.GetHit("/feed")
	if err != nil || hit == nil {
		log.Fatal("there is no feed: ", err)
	}
	reader := hit.Reader()
	defer reader.Close()
	fmt.Println(string(hit.Metadata()), hit.Len())
	io.Copy(os.Stdout, reader)
	// Output:
	// text/xml 6
	// <rss/>
}

func ExampleCache_Claim() {
	cache, end := example()
	defer end()
	for line := range 3 {
		claim, err := cache.Claim("log")
		if err != nil {
			log.Fatal(err)
		}
		before, _ := claim.Value()
		if _, err := claim.Put(fmt.Appendf(before, "line %d\n", line)); err != nil {
			log.Fatal(err)
		}
	}
	text, _, _ := cache.Get("log")
	fmt.Print(string(text))
	// Output:
	// line 0
	// line 1
	// line 2
}

func ExampleCache_Iter() {
	cache, end := example()
	defer end()
	cache.Put("/about", []byte("12345"))
	for hit, err := range cache.Iter() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hit.Key(), hit.Len())
	}
	// Output: /about 5
}
