package eyewall_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"eyewall"
)

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{465, 10_000} {
		cache := open(b, eyewall.Options{Size: 64 << 20})
		keys := make([]string, 1000)
		for i := range keys {
			keys[i] = fmt.Sprint("key ", i)
			must(0, cache.Put(keys[i], []byte(strings.Repeat("x", size))))
		}
		b.Run(fmt.Sprintf("Get/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				cache.Get(keys[i%1000])
			}
		})
		b.Run(fmt.Sprintf("GetAppend/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			buffer := make([]byte, 0, 16<<10)
			for i := range b.N {
				cache.GetAppend(buffer, keys[i%1000])
			}
		})
		b.Run(fmt.Sprintf("GetHit/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				must(cache.GetHit(keys[i%1000])).Release()
			}
		})
		b.Run(fmt.Sprintf("Fill/%d", size), func(b *testing.B) {
			for i := range b.N {
				cache.Fill(context.Background(), keys[i%1000], nil)
			}
		})
		b.Run(fmt.Sprintf("Parallel/%d", size), func(b *testing.B) {
			b.RunParallel(func(p *testing.PB) {
				for i := 0; p.Next(); i++ {
					cache.Get(keys[i%1000])
				}
			})
		})
	}
}

func BenchmarkPut(b *testing.B) {
	cache := open(b, eyewall.Options{Size: 64 << 20})
	value := []byte(strings.Repeat("x", 465))
	b.ReportAllocs()
	for i := range b.N {
		must(0, cache.Put("key"+fmt.Sprint(i%1000), value))
	}
}
