package eyewall_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"eyewall"
)

// Tests start their own program as another process. The variable says what it does then, and with which words.
const roleVariable = "EYEWALL_TEST_ROLE"

var roles = map[string]func(words []string) error{
	"write":    writeUntilKilled,
	"fill":     fillOnce,
	"die":      dieInFill,
	"hold":     holdFill,
	"truncate": readTruncated,
	"version":  printVersion,
}

func TestMain(m *testing.M) {
	role := strings.Split(os.Getenv(roleVariable), "\n")
	if work := roles[role[0]]; work != nil {
		if err := work(role[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is a command in a role.
func process(t *testing.T, role string, words ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(must(os.Executable()))
	command.Env = append(os.Environ(), roleVariable+"="+strings.Join(append([]string{role}, words...), "\n"))
	command.Stderr = os.Stderr
	return command
}

// start starts a process and waits for its first line. The test kills it at the end, or closes its standard input. If
// the test itself is killed, the kernel closes it.
func start(t *testing.T, role string, words ...string) (*exec.Cmd, io.Closer) {
	t.Helper()
	command := process(t, role, words...)
	input, output := must(command.StdinPipe()), must(command.StdoutPipe())
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(command) })
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the process said %q, %v", line, err)
	}
	return command, input
}

func kill(command *exec.Cmd) {
	command.Process.Kill()
	command.Wait()
}

// writeUntilKilled puts and streams values, each of which has one right form. It ends with its standard input, too, so
// that it doesn't outlive a test that was killed.
func writeUntilKilled(words []string) error {
	cache, err := eyewall.Open(words[0], eyewall.Options{LockDeadline: lockDeadline})
	if err != nil {
		return err
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("ready")
	for i := 0; ; i++ {
		key := fmt.Sprint("key ", i%50)
		value := valueOf(key)
		if i%3 == 0 {
			err = cache.PutReader(key, strings.NewReader(string(value)), -1)
		} else {
			err = cache.Put(key, value, eyewall.Tags("all"))
		}
		// A process that was killed in the middle may still hold a lock or a claim.
		if err != nil && !errors.Is(err, eyewall.ErrBusy) && !errors.Is(err, eyewall.ErrInterrupted) && !errors.Is(err, eyewall.ErrPinned) {
			return err
		}
	}
}

// fillOnce fills a key. If this process makes the value, it appends a line to a file.
func fillOnce(words []string) error {
	cache, err := eyewall.Open(words[0], eyewall.Options{LockDeadline: lockDeadline})
	if err != nil {
		return err
	}
	defer cache.Close()
	value, err := cache.Fill(context.Background(), "page", func(context.Context) (eyewall.Value, error) {
		made, err := os.OpenFile(words[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = made.WriteString("made\n")
			made.Close()
		}
		return eyewall.Value{Bytes: []byte("page")}, err
	})
	if err == nil && string(value) != "page" {
		err = fmt.Errorf("the fill returned %q", value)
	}
	return err
}

// dieInFill dies while it makes a value.
func dieInFill(words []string) error {
	cache, err := eyewall.Open(words[0], eyewall.Options{LockDeadline: lockDeadline})
	if err != nil {
		return err
	}
	_, err = cache.Fill(context.Background(), "page", func(context.Context) (eyewall.Value, error) {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	})
	return err
}

// holdFill makes a value until its standard input ends.
func holdFill(words []string) error {
	cache, err := eyewall.Open(words[0], eyewall.Options{LockDeadline: lockDeadline})
	if err != nil {
		return err
	}
	defer cache.Close()
	_, err = cache.Fill(context.Background(), "page", func(context.Context) (eyewall.Value, error) {
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		return eyewall.Value{Bytes: []byte("from the other process")}, nil
	})
	return err
}

// readTruncated truncates its volume and reads on.
func readTruncated(words []string) error {
	cache, err := eyewall.Open(words[0], eyewall.Options{Size: 4 << 20, SurviveSIGBUS: words[1] == "survives"})
	if err != nil {
		return err
	}
	if err := cache.Put("key", valueOf("a long key of 9")); err != nil {
		return err
	}
	hit, err := cache.GetHit("key")
	if err != nil {
		return err
	}
	if err := os.Truncate(words[0], 0); err != nil {
		return err
	}
	sum := 0
	for _, b := range hit.Bytes() {
		sum += int(b)
	}
	if err := hit.Check(); !errors.Is(err, eyewall.ErrFailed) {
		return fmt.Errorf("Check returned %v", err)
	}
	hit.Release()
	if _, _, err := cache.Get("key"); !errors.Is(err, eyewall.ErrFailed) || !cache.IsFailed() {
		return fmt.Errorf("Get returned %v", err)
	}
	// Go's own handler still works: a nil pointer panics.
	defer func() { fmt.Println("survived, and recovered from", recover()) }()
	var nothing *int
	*nothing = sum
	return nil
}

func printVersion([]string) error {
	_, err := eyewall.Version()
	return err
}

func TestTruncatedVolumes(t *testing.T) {
	path := t.TempDir() + "/volume"
	output, err := process(t, "truncate", path, "survives").Output()
	if err != nil || !strings.HasPrefix(string(output), "survived, and recovered from runtime error: invalid memory address") {
		t.Fatalf("the process ended by %v and said %s", err, output)
	}
	dies := process(t, "truncate", t.TempDir()+"/volume", "dies")
	dies.Stderr = nil
	output, err = dies.Output()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || !strings.Contains(string(ended.Stderr), "SIGBUS") {
		t.Fatalf("the process ended by %v and said %s", err, output)
	}
}

// putsSoFar returns how many values were put. While a stopped process owns a lock, the statistics may fail, so it tries
// again until the deadline.
func putsSoFar(t *testing.T, cache *eyewall.Cache, deadline time.Time) uint64 {
	t.Helper()
	for {
		stats, err := cache.Stat()
		if err == nil {
			return stats.Puts
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestAKillStormLeavesNoWrongByte(t *testing.T) {
	path := t.TempDir() + "/volume"
	cache := openAt(t, path, eyewall.Options{Size: 2 << 20})
	hits := 0
	for round := range 12 {
		one, _ := start(t, "write", path)
		other, _ := start(t, "write", path)
		// Longer than the calls of two processes wait for a lock.
		deadline := time.Now().Add(3 * lockDeadline)
		// The kills meet the writers at other points in each round.
		enough := putsSoFar(t, cache, deadline) + uint64(20+37*round)
		for i := 0; i%50 != 0 || putsSoFar(t, cache, deadline) < enough; i++ {
			if time.Now().After(deadline) {
				t.Fatal("the writers write nothing")
			}
			key := fmt.Sprint("key ", i%50)
			value, isThere, err := cache.Get(key)
			if err != nil && !errors.Is(err, eyewall.ErrBusy) {
				t.Fatal(err)
			}
			if isThere {
				if hits++; string(value) != string(valueOf(key)) {
					t.Fatalf("%s has a wrong value of %d bytes", key, len(value))
				}
			}
		}
		kill(one)
		kill(other)
	}
	for hit, err := range cache.Iter() {
		if err != nil {
			t.Fatal(err)
		}
		if string(hit.Bytes()) != string(valueOf(hit.Key())) {
			t.Fatalf("%s has a wrong value of %d bytes", hit.Key(), hit.Len())
		}
		hits++
	}
	if hits == 0 {
		t.Fatal("nothing was found")
	}
	put(t, cache, "after", "the storm")
	wantValue(t, cache, "after", "the storm")
}

func TestAWriterEndsWithItsParent(t *testing.T) {
	path := t.TempDir() + "/volume"
	openAt(t, path, eyewall.Options{})
	writer, input := start(t, "write", path)
	input.Close()
	if err := writer.Wait(); err != nil {
		t.Fatalf("the process ended by %v", err)
	}
}

func TestProcessesMakeAValueOnce(t *testing.T) {
	folder := t.TempDir()
	openAt(t, folder+"/volume", eyewall.Options{})
	var running []*exec.Cmd
	for range 6 {
		command := process(t, "fill", folder+"/volume", folder+"/made")
		command.Stdout = os.Stderr
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, command)
	}
	for _, command := range running {
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	}
	if made := must(os.ReadFile(folder + "/made")); string(made) != "made\n" {
		t.Fatalf("the value was made %d times", strings.Count(string(made), "\n"))
	}
}

func TestAProcessThatDiesInAFillIsSucceeded(t *testing.T) {
	folder := t.TempDir()
	cache := openAt(t, folder+"/volume", eyewall.Options{})
	if err := process(t, "die", folder+"/volume").Run(); err == nil {
		t.Fatal("the process survived")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	value, err := cache.Fill(ctx, "page", func(context.Context) (eyewall.Value, error) {
		return eyewall.Value{Bytes: []byte("from the heir")}, nil
	})
	if err != nil || string(value) != "from the heir" {
		t.Fatalf("Fill = %q, %v", value, err)
	}
}

func TestAWaitForAnotherProcessObeysTheContext(t *testing.T) {
	folder := t.TempDir()
	cache := openAt(t, folder+"/volume", eyewall.Options{})
	_, input := start(t, "hold", folder+"/volume")
	never := func(context.Context) (eyewall.Value, error) {
		t.Error("the value was made twice")
		return eyewall.Value{}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := cache.Fill(ctx, "page", never)
	wantError(t, err, context.DeadlineExceeded)

	// Two wait: the one who asks the library gives up, and the other takes over.
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	given := make(chan error)
	go func() {
		_, err := cache.Fill(ctx, "page", never)
		given <- err
	}()
	type result struct {
		value []byte
		err   error
	}
	got := make(chan result)
	go func() {
		value, err := cache.Fill(context.Background(), "page", never)
		got <- result{value, err}
	}()
	cancel()
	wantError(t, <-given, context.Canceled)
	input.Close()
	if r := <-got; r.err != nil || string(r.value) != "from the other process" {
		t.Fatalf("Fill = %q, %v", r.value, r.err)
	}
}

func TestAMissingLibraryIsNamed(t *testing.T) {
	for _, c := range []struct{ library, want string }{
		{t.TempDir() + "/none.so", "none.so: cannot open shared object file: No such file or directory; correct or unset EYEWALL_LIBRARY"},
		{"libm.so.6", "undefined symbol: eyewall_error_message; install the libeyewall of the same release"},
	} {
		command := process(t, "version")
		command.Env = append(command.Env, eyewall.LibraryVariable+"="+c.library)
		output, err := command.Output()
		if err == nil || !strings.HasPrefix(string(output), "eyewall: libeyewall can't be loaded: ") || !strings.Contains(string(output), c.want) {
			t.Fatalf("the process ended by %v and said %s", err, output)
		}
	}
	if version := must(eyewall.Version()); len(strings.Split(version, ".")) != 3 {
		t.Fatalf("the version is %q", version)
	}
}
