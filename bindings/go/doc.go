// Package eyewall is a cache in one memory-mapped file, a volume, which all processes of a machine share, in any
// language, with a hard cap in bytes.
//
//	cache, err := eyewall.Open("/dev/shm/pages", eyewall.Options{Size: 64 << 20})
//	if err != nil {
//		return err
//	}
//	defer cache.Close()
//
//	page, err := cache.Fill(ctx, "/news", func(ctx context.Context) (eyewall.Value, error) {
//		html, err := render(ctx)
//		return eyewall.Value{Bytes: html, TTL: time.Minute, Tags: []string{"news"}}, err
//	})
//
// A look-up takes no lock and makes no system call. A process may be killed at any instruction: it loses only the value
// that it was writing. It is a cache: an entry may be gone at the next get.
//
// # The library
//
// The package calls libeyewall by [purego], without cgo. Open looks for it in this order:
//
//   - the file that the environment variable EYEWALL_LIBRARY names; then it looks nowhere else;
//   - libeyewall.so.0 in the folders of LD_LIBRARY_PATH and of the system (ldconfig);
//   - /usr/local/lib/libeyewall.so.0.
//
// A program is linked dynamically to the C library of the system, even with CGO_ENABLED=0. It needs Linux on amd64 or
// arm64, with glibc.
//
// # Goroutines and threads
//
// Nothing belongs to a thread: a goroutine may begin with a hit, a claim or a writer, and another one end it. A call
// that waits occupies a thread, but no processor, so other goroutines run. Calls that wait are [Cache.Claim] and
// [Cache.NewWriter] (for another caller of the key, up to [Options.LockDeadline]), [Cache.Sync], and reads of a volume
// that is larger than memory. [Cache.Fill] waits without occupying threads.
//
// A goroutine that reads [Hit.Bytes] where the bytes aren't in memory waits for the disk, and its processor with it.
// [Cache.Get] doesn't have that cost.
//
// # Processes
//
// Programs started by os/exec don't inherit the cache. Go can't fork without exec, so each process opens the volume
// itself.
//
// # Lost bytes
//
// If another program truncates the volume's file while it is open, or its storage fails, reading raises SIGBUS, and Go
// ends the process: neither recover nor [runtime/debug.SetPanicOnFault] helps inside of the library. With
// [Options.SurviveSIGBUS] calls return [ErrFailed] instead. Faults elsewhere still go to Go's own handler.
//
// [purego]: https://github.com/ebitengine/purego
package eyewall
