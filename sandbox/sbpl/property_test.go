package sbpl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// fakePaths are a small host with everything that a rule could trip over.
var fakePaths = []string{
	"/bin -> usr/bin", "/usr/bin/sh", "/usr/lib/libc.so", "/usr/lib64/", "/lib64 -> usr/lib64", "/etc/passwd", "/etc/ssl/cert", "/sys/kernel/",
	"/ws/a/b/c/file", "/ws/a/file", "/ws/a/.env", "/ws/.git/config", "/ws/.git/hooks/pre-commit", "/ws/link -> ../etc", "/ws/notes.key", "/ws/sock=",
	"/home/me/.ssh/id", "/home/me/project/src/main.go", "/home/me/project/.env", "/home/me/link -> project", "/tmp/x/y", "/var/run -> ../run", "/run/daemon.sock=", "/run/other.sock=",
}

// askable are paths that rules name, existing and not.
var askable = []string{
	"/", "/usr", "/usr/bin", "/bin", "/bin/sh", "/usr/lib", "/etc", "/etc/passwd", "/ws", "/ws/a", "/ws/a/b", "/ws/a/b/c", "/ws/a/b/c/file", "/ws/a/file", "/ws/.git", "/ws/.git/hooks",
	"/ws/link", "/ws/none", "/ws/a/none/deep", "/home", "/home/me", "/home/me/.ssh", "/home/me/project", "/home/me/project/src", "/home/me/link", "/tmp", "/private/tmp/x", "/private/tmp", "/nowhere", "/run", "/run/daemon.sock", "/var/run/other.sock",
	"/System/Library", "/dev/null", "/dev", "/sys", "/ws/a/\u2026",
}

var expressions = []string{`/\.env$`, `^/ws/`, `^/ws(/|$)`, `^/ws/a/[^/]+$`, `\.key$`, `^/home/me/project/.*\.go$`, `/\.git(/.*)?$`, `^/`, `a`, `^/private/tmp/x`, `/hooks/[^/]*$`, `^/ws/a/b/.*$`}

var askedOps = []string{
	"default", "file*", "file-read*", "file-read-data", "file-read-metadata", "file-read-xattr", "file-write*", "file-write-data", "file-write-create", "file-write-unlink", "file-write-mode",
	"file-map-executable", "process*", "process-exec", "process-exec*", "process-fork", "network*", "network-outbound", "network-bind", "signal", "mach-lookup",
}

// generate makes a profile of a stream of numbers.
func generate(next func(n int) int) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(" + []string{"deny", "allow"}[next(2)] + " default)\n")
	for range 1 + next(10) {
		b.WriteString("(" + []string{"allow", "deny"}[next(2)])
		for range 1 + next(2) {
			b.WriteString(" " + askedOps[1+next(len(askedOps)-1)])
		}
		for range next(3) {
			b.WriteString(" " + generateFilter(next, 2))
		}
		b.WriteString(")\n")
	}
	return b.String()
}

func generateFilter(next func(n int) int, depth int) string {
	p := askable[next(len(askable))]
	switch next(12) {
	case 0, 1, 2, 3, 4:
		return fmt.Sprintf("(subpath %q)", p)
	case 5, 6, 7:
		return fmt.Sprintf("(literal %q)", p)
	case 8:
		return `(regex #"` + expressions[next(len(expressions))] + `")`
	case 9:
		return fmt.Sprintf("(prefix %q)", p)
	case 10:
		return "(vnode-type " + []string{"DIRECTORY", "REGULAR-FILE", "SYMLINK"}[next(3)] + ")"
	}
	if depth == 0 {
		return fmt.Sprintf("(subpath %q)", p)
	}
	a, b := generateFilter(next, depth-1), generateFilter(next, depth-1)
	return []string{"(require-all " + a + " " + b + ")", "(require-any " + a + " " + b + ")", "(require-not " + a + ")", "(require-all " + a + " (require-not " + b + "))"}[next(4)]
}

// A question is an operation on a path, and whether a policy lets it be done.
type question struct {
	operation, at string
	does          bool
}

// held compares the policy of a profile with the profile, on the fake host: where
// they differ the rule that decided has to say so, for that operation, on that
// side. A strict compilation must have no difference that is wider.
func held(text string) error {
	h := newFakeHost(fakePaths...)
	p, err := Parse("fake.sb", text, nil)
	if err != nil {
		return nil // not a profile
	}
	policy, rules, err := p.policy(Options{}, h)
	if err != nil {
		return err
	}
	again, rules2, _ := p.policy(Options{}, newFakeHost(fakePaths...))
	if !reflect.DeepEqual(policy, again) || !reflect.DeepEqual(rules, rules2) {
		return errors.New("it is another the second time")
	}
	here, err := p.here(h)
	if err != nil {
		return err
	}
	_, _, strict := p.policy(Options{Strict: true}, h)
	check := func(operation, at string, does bool) error {
		v := Verdict{}
		q := queryOf(operation, at)
		q.VnodeType, q.Alias = string(h.kinds[at]), here.aliasOf(at)
		ev := here.parsed.Evaluate(q)
		v.Allow, v.Why, v.Index = ev.Allow, ev.Why, len(here.parsed.Rules)
		for i := range here.parsed.Rules {
			if ev.Rule == &here.parsed.Rules[i] {
				v.Index = i
			}
		}
		if v.Allow == does {
			return nil
		}
		for _, d := range rules[v.Index].Differences {
			if d.concerns(operation) && (d.Toward == Narrower) == v.Allow && (strict != nil || d.Toward != Wider) {
				return nil
			}
		}
		return fmt.Errorf("%s %s: the policy has %v, the profile %v: %s\n%+v", operation, at, does, v.Allow, v.Why, rules[v.Index])
	}
	for _, at := range h.existing() {
		if own(at) || h.kinds[at] == symlink || h.kinds[at] == socket {
			continue
		}
		for _, ask := range questionsAbout(h, policy, at) {
			if err := check(ask.operation, ask.at, ask.does); err != nil {
				return err
			}
		}
	}
	return nil
}

// questionsAbout are what a policy answers about one path of the host.
func questionsAbout(h *fakeHost, policy sandbox.Policy, at string) []question {
	a := accessOf(policy, at)
	asks := []question{{"file-read-data", at, a.read}, {"file-read-metadata", at, a.look}}
	if h.kinds[at] == directory {
		in := accessOf(policy, join(at, "any.thing"))
		asks = append(asks, []question{{"file-write-create", join(at, "any.thing"), in.write}, {"file-read-data", join(at, "any.thing"), in.read}}...)
	} else {
		asks = append(asks, []question{{"file-write-data", at, a.write}}...)
		if a.read { // what cannot be read is not executed either
			asks = append(asks, question{"process-exec", at, a.exec})
		}
		if up := accessOf(policy, path.Dir(at)); up.write && a.write {
			asks = append(asks, question{"file-write-unlink", at, !mounted(policy, at)})
		}
	}
	return asks
}

// TestPoliciesMeanWhatProfilesSay is held on many random profiles.
func TestPoliciesMeanWhatProfilesSay(t *testing.T) {
	n := 600
	if testing.Short() || raced {
		n = 200
	}
	failed := 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		text := generate(r.IntN)
		if err := held(text); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, text)
			if failed++; failed > 5 {
				return
			}
		}
	}
}

// FuzzPolicy reads bytes as a profile's text, and as the numbers that one is made of.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte("(version 1)(deny default)(allow file-read* (subpath \"/ws\"))"))
	f.Add([]byte{0, 4, 0, 1, 5, 1, 3, 7, 2, 2, 9, 1, 1, 8, 3, 3, 0, 2, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := held(string(data)); err != nil {
			t.Errorf("%v\n%s", err, data)
		}
		i := 0
		text := generate(func(n int) int {
			if i++; i > len(data) {
				return 0
			}
			return int(data[i-1]) % n
		})
		if err := held(text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	})
}
