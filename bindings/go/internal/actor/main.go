// The actor of Go: answers the questions on its standard input (bindings/cases/README.md).
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"eyewall"
)

// The number of words before the options, which are name=value.
var words = map[string]int{"open": 2, "put": 2, "negative": 2, "add": 2, "touch": 1, "fill": 2, "begin": 1, "purge": 2}

var errGivesUp = errors.New("the fill gives up")

type actor struct {
	cache  *eyewall.Cache
	claim  *eyewall.Claim
	writer *eyewall.Writer
	// serial is that of the entry that this actor read last.
	serial uint64
}

// question is one question: its words, and its options.
type question struct {
	words   []string
	options map[string]string
}

type answer = []string

func (q question) milliseconds(name string) time.Duration {
	number, _ := strconv.Atoi(q.options[name])
	return time.Duration(number) * time.Millisecond
}

func (q question) put() []eyewall.PutOption {
	var options []eyewall.PutOption
	if _, isThere := q.options["ttl"]; isThere {
		options = append(options, eyewall.TTL(q.milliseconds("ttl")))
	}
	if _, isThere := q.options["stale"]; isThere {
		options = append(options, eyewall.Stale(q.milliseconds("stale")))
	}
	if tags, isThere := q.options["tags"]; isThere {
		options = append(options, eyewall.Tags(strings.Split(tags, ",")...))
	}
	return options
}

func either(isFirst bool, err error, first, second string) (answer, error) {
	if isFirst {
		return answer{first}, err
	}
	return answer{second}, err
}

var questions = map[string]func(a *actor, q question) (answer, error){
	"open": func(a *actor, q question) (answer, error) {
		size, err := strconv.ParseUint(q.words[1], 10, 64)
		if err != nil {
			return nil, err
		}
		a.cache, err = eyewall.Open(q.words[0], eyewall.Options{Size: size, Fleet: q.options["fleet"] == "yes"})
		return answer{"ok"}, err
	},
	"put": func(a *actor, q question) (answer, error) {
		return answer{"ok"}, a.cache.Put(q.words[0], []byte(q.words[1]), q.put()...)
	},
	"negative": func(a *actor, q question) (answer, error) {
		reason, err := strconv.ParseUint(q.words[1], 10, 16)
		return answer{"ok"}, errors.Join(err, a.cache.PutNegative(q.words[0], uint16(reason), q.put()...))
	},
	"get":    (*actor).get,
	"lookup": (*actor).lookup,
	"add": func(a *actor, q question) (answer, error) {
		isStored, err := a.cache.Add(q.words[0], []byte(q.words[1]), q.put()...)
		return either(isStored, err, "ok", "unmet")
	},
	"replace": func(a *actor, q question) (answer, error) {
		isStored, err := a.cache.Replace(q.words[0], a.serial, []byte(q.words[1]))
		return either(isStored, err, "ok", "unmet")
	},
	"remove": func(a *actor, q question) (answer, error) {
		isRemoved, err := a.cache.Delete(q.words[0])
		return either(isRemoved, err, "ok", "miss")
	},
	"contains": func(a *actor, q question) (answer, error) {
		isThere, err := a.cache.Contains(q.words[0])
		return either(isThere, err, "yes", "no")
	},
	"touch": func(a *actor, q question) (answer, error) {
		isThere, err := a.cache.Touch(q.words[0], q.milliseconds("ttl"), q.milliseconds("stale"))
		return either(isThere, err, "ok", "miss")
	},
	"increment": func(a *actor, q question) (answer, error) {
		by, err := strconv.ParseInt(q.words[1], 10, 64)
		if err != nil {
			return nil, err
		}
		sum, err := a.cache.Increment(q.words[0], by)
		return answer{"sum", strconv.FormatInt(sum, 10)}, err
	},
	"append": (*actor).append,
	"claim": func(a *actor, q question) (answer, error) {
		var err error
		if a.claim, err = a.cache.Claim(q.words[0]); err != nil {
			return nil, err
		}
		if value, isThere := a.claim.Value(); isThere {
			return answer{"value", string(value)}, nil
		}
		return answer{"none"}, nil
	},
	"store": func(a *actor, q question) (answer, error) {
		isStored, err := a.claim.Put([]byte(q.words[0]))
		return either(isStored, err, "ok", "superseded")
	},
	"fill": (*actor).fill,
	"begin": func(a *actor, q question) (_ answer, err error) {
		a.writer, err = a.cache.NewWriter(q.words[0], -1, q.put()...)
		return answer{"ok"}, err
	},
	"write": func(a *actor, q question) (answer, error) {
		_, err := a.writer.Write([]byte(q.words[0]))
		return answer{"ok"}, err
	},
	"commit": func(a *actor, q question) (answer, error) {
		isStored, err := a.writer.Commit()
		return either(isStored, err, "ok", "superseded")
	},
	"abort": func(a *actor, q question) (answer, error) { return answer{"ok"}, a.writer.Close() },
	"purge": (*actor).purge,
	"clear": func(a *actor, q question) (answer, error) { return answer{"ok"}, a.cache.Clear() },
	"count": func(a *actor, q question) (answer, error) {
		count := 0
		for _, err := range a.cache.Iter() {
			if err != nil {
				return nil, err
			}
			count++
		}
		return answer{"count", strconv.Itoa(count)}, nil
	},
}

func (a *actor) get(q question) (answer, error) {
	hit, err := a.cache.GetHit(q.words[0])
	if err != nil || hit == nil {
		return answer{"miss"}, err
	}
	defer hit.Release()
	a.serial = hit.Info().Serial
	return answer{"value", string(hit.Bytes())}, hit.Check()
}

func (a *actor) lookup(q question) (answer, error) {
	hit, err := a.cache.Lookup(q.words[0])
	if err != nil || hit == nil {
		return answer{"miss"}, err
	}
	defer hit.Release()
	info := hit.Info()
	switch {
	case info.IsNegative:
		return answer{"negative", strconv.Itoa(int(info.Reason))}, nil
	case info.IsStale:
		return answer{"stale", string(hit.Bytes())}, nil
	}
	return answer{"fresh", string(hit.Bytes())}, nil
}

// append retries if a put superseded the claim.
func (a *actor) append(q question) (answer, error) {
	for {
		claim, err := a.cache.Claim(q.words[0])
		if err != nil {
			return nil, err
		}
		value, _ := claim.Value()
		value = append(value, q.words[1]...)
		if isStored, err := claim.Put(value); isStored || err != nil {
			return answer{"value", string(value)}, err
		}
	}
}

func (a *actor) fill(q question) (answer, error) {
	word := "value"
	value, err := a.cache.Fill(context.Background(), q.words[0], func(context.Context) (eyewall.Value, error) {
		switch q.options["then"] {
		case "die":
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "fail":
			return eyewall.Value{}, errGivesUp
		}
		word = "made"
		return eyewall.Value{Bytes: []byte(q.words[1])}, nil
	})
	if errors.Is(err, errGivesUp) {
		return answer{"failed"}, nil
	}
	return answer{word, string(value)}, err
}

func (a *actor) purge(q question) (answer, error) {
	tag, prefix, all := a.cache.PurgeTag, a.cache.PurgePrefix, a.cache.PurgeAll
	if q.options["mode"] == "soft" {
		tag, prefix, all = a.cache.SoftPurgeTag, a.cache.SoftPurgePrefix, a.cache.SoftPurgeAll
	}
	switch q.words[0] {
	case "tag":
		return answer{"ok"}, tag(q.words[1])
	case "prefix":
		return answer{"ok"}, prefix(q.words[1])
	}
	return answer{"ok"}, all()
}

func decoded(word string) string {
	if word == "%" {
		return ""
	}
	text, err := url.PathUnescape(word)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return text
}

func encoded(word string) string {
	if word == "" {
		return "%"
	}
	var to strings.Builder
	for _, b := range []byte(word) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-_./", b) >= 0 {
			to.WriteByte(b)
		} else {
			fmt.Fprintf(&to, "%%%02x", b)
		}
	}
	return to.String()
}

func (a *actor) answer(name string, rest []string) answer {
	work := questions[name]
	if work == nil {
		return answer{"cannot"}
	}
	count, isLimited := words[name]
	if !isLimited {
		count = len(rest)
	}
	if name == "purge" && rest[0] == "all" {
		count = 1
	}
	q := question{rest[:count], map[string]string{}}
	for _, option := range rest[count:] {
		key, value, _ := strings.Cut(option, "=")
		q.options[key] = value
	}
	said, err := work(a, q)
	if err == nil {
		return said
	}
	fmt.Fprintln(os.Stderr, err)
	var code eyewall.Code
	if errors.As(err, &code) {
		return answer{"error", code.String()}
	}
	return answer{"error", "unknown"}
}

func main() {
	a := &actor{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		asked := strings.Split(lines.Text(), "\t")
		for i := range asked {
			asked[i] = decoded(asked[i])
		}
		said := a.answer(asked[0], asked[1:])
		for i := range said {
			said[i] = encoded(said[i])
		}
		fmt.Println(strings.Join(said, "\t"))
	}
}
