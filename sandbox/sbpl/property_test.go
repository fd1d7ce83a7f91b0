package sbpl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/seccomp"
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
	"/ws/link", "/ws/none", "/ws/newx", "/ws/a/none/deep", "/home", "/home/me", "/home/me/.ssh", "/home/me/project", "/home/me/project/src", "/home/me/link", "/tmp", "/private/tmp/x", "/private/tmp", "/nowhere", "/run", "/run/daemon.sock", "/var/run/other.sock",
	"/System/Library", "/dev/null", "/dev", "/sys", "/ws/a/\u2026",
}

var expressions = []string{`/\.env$`, `^/ws/`, `^/ws(/|$)`, `^/ws/a/[^/]+$`, `\.key$`, `^/home/me/project/.*\.go$`, `/\.git(/.*)?$`, `^/`, `a`, `^/private/tmp/x`, `/hooks/[^/]*$`, `^/ws/a/b/.*$`}

var askedOps = []string{
	"default", "file*", "file-read*", "file-read-data", "file-read-metadata", "file-read-xattr", "file-write*", "file-write-data", "file-write-create", "file-write-unlink", "file-write-mode",
	"file-map-executable", "file-link", "file-write-xattr", "file-write-times", "process*", "process-exec", "process-exec*", "process-fork", "network*", "network-outbound", "network-bind", "signal", "mach-lookup",
}

// subtle are filters about what does not exist yet and what may become another.
var subtle = []string{
	`(regex #"^/ws/none/.*")`, `(require-all (subpath "/ws/none") (require-not (literal "/ws/none")))`, `(regex #"^/ws/a/file/.*")`, `(literal "/ws/a/b/c/file")`,
	`(require-not (require-any (subpath "/ws") (subpath "/ws/link")))`, `(require-not (require-any (subpath "/home/me") (subpath "/home/me/link/none")))`,
	`(regex #"/\.env$") (regex #"^/ws/[a-z]+x$")`, `(regex #"^/private/(tmp|var)/")`, `(prefix "/private/t")`, `(literal "/ws/a/b")`, `(literal "/ws/a/none")`,
	`(require-all (subpath "/ws") (vnode-type SYMLINK))`, `(require-all (literal "/ws/a/file") (vnode-type FIFO))`,
}

// generate makes a profile of a stream of numbers.
func generate(next func(n int) int) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(" + []string{"deny", "allow"}[next(2)] + " default)\n")
	for range 1 + next(10) {
		if next(6) == 0 {
			fmt.Fprintf(&b, "(deny %s %s)\n", askedOps[1+next(len(askedOps)-1)], subtle[next(len(subtle))])
			continue
		}
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
		return "(vnode-type " + []string{"DIRECTORY", "REGULAR-FILE", "SYMLINK", "FIFO", "SOCKET"}[next(5)] + ")"
	}
	if depth == 0 {
		return fmt.Sprintf("(subpath %q)", p)
	}
	a, b := generateFilter(next, depth-1), generateFilter(next, depth-1)
	return []string{"(require-all " + a + " " + b + ")", "(require-any " + a + " " + b + ")", "(require-not " + a + ")", "(require-all " + a + " (require-not " + b + "))"}[next(4)]
}

// A question is an operation on a kind of thing at a path, and whether a policy lets
// it be done.
type question struct {
	operation, at string
	kind          kind
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
	check := func(q question) error {
		v, rule := decided(here, q)
		if v.Allow == q.does {
			if wrote, _ := decided(&Profile{parsed: p.parsed, private: here.private}, q); q.does && !wrote.Allow && !linked(p, here, h, q.at) {
				return fmt.Errorf("%s %s (%s): the policy allows it, and the profile as it was written does not: %s", q.operation, q.at, q.kind, wrote.Why)
			}
			return nil
		}
		for _, d := range rules[rule].Differences {
			if d.concerns(q.operation) && (d.Toward == Narrower) == v.Allow && (strict != nil || d.Toward != Wider) {
				return nil
			}
		}
		return fmt.Errorf("%s %s (%s): the policy has %v, the profile %v: %s\n%+v", q.operation, q.at, q.kind, q.does, v.Allow, v.Why, rules[rule])
	}
	var asks []question
	for _, at := range h.existing() {
		if own(at) || h.kinds[at] == symlink || h.kinds[at] == socket {
			continue
		}
		asks = append(asks, questionsAbout(h, policy, at)...)
		asks = append(asks, replaced(h, policy, at)...)
	}
	for _, at := range askable {
		for _, at := range here.named("subpath", at) {
			if h.kinds[at] == nothing && !own(at) && behindNoLink(h, at) {
				asks = append(asks, makes(policy, at)...)
				asks = append(asks, makes(policy, join(at, "any.thing"))...)
			}
		}
	}
	for _, q := range asks {
		if err := check(q); err != nil {
			return err
		}
	}
	return nil
}

// decided asks a profile, and says which rule it was.
func decided(p *Profile, q question) (seatbelt.Verdict, int) {
	ask := queryOf(q.operation, q.at)
	ask.VnodeType, ask.Alias = string(q.kind), p.aliasOf(q.at)
	v := p.parsed.Evaluate(ask)
	for i := range p.parsed.Rules {
		if v.Rule == &p.parsed.Rules[i] {
			return v, i
		}
	}
	return v, len(p.parsed.Rules)
}

// linked reports whether a rule may be about a path because a link leads to it, which
// the profile, as it was written, does not let a tool make.
func linked(p, here *Profile, h *fakeHost, at string) bool {
	find := newFinder(h)
	wrote := &Profile{parsed: p.parsed, private: here.private}
	for l := range h.links {
		if to := find.find(l); within(at, to.path) && !wrote.writes(l) {
			return true
		}
	}
	return false
}

func behindNoLink(h *fakeHost, at string) bool {
	found := newFinder(h).find(at)
	return len(found.links) == 0 && found.kind == directory
}

// makes are what a tool can do at a path that is not there, if it can make something.
func makes(policy sandbox.Policy, at string) (asks []question) {
	a := accessOf(policy, at)
	if !a.write {
		return nil
	}
	for _, k := range []kind{regular, directory, symlink, fifo, socket} {
		if refused(policy, map[kind]string{symlink: "symlinkat", fifo: "mknodat", socket: "mknodat"}[k]) {
			continue
		}
		for _, o := range contentOps {
			asks = append(asks, question{o, at, k, true})
		}
	}
	for _, k := range []kind{regular, fifo} {
		asks = append(asks, question{"file-read-data", at, k, a.read})
	}
	if a.exec {
		asks = append(asks, question{"process-exec", at, regular, true})
	}
	for o, call := range map[string]string{"file-write-mode": "fchmodat", "file-write-times": "utimensat", "file-write-xattr": "setxattr", "file-link": "linkat"} {
		if !refused(policy, call) {
			asks = append(asks, question{o, at, regular, true})
		}
	}
	// What is allowed and cannot be done at what is not there is a matter of narrower.
	return slices.DeleteFunc(asks, func(q question) bool { return !q.does })
}

// replaced are what a tool can do once it has removed what is at a path, and made
// something else there.
func replaced(h *fakeHost, policy sandbox.Policy, at string) (asks []question) {
	if at == "/" || !accessOf(policy, at).write || !accessOf(policy, path.Dir(at)).write {
		return nil
	}
	for p := at; p != "/"; p = path.Dir(p) {
		// A mount keeps its place; what is around one can be moved, and it moves along.
		if accessOf(policy, path.Dir(p)).write && !mounted(policy, p) {
			return append(makes(policy, at), makes(policy, join(at, "any.thing"))...)
		}
	}
	return nil
}

// refused reports whether a policy's filter refuses a call, with whatever arguments.
func refused(p sandbox.Policy, call string) bool {
	return call != "" && slices.ContainsFunc(p.Syscalls.Rules, func(r seccomp.Rule) bool {
		return slices.Contains(r.Names, call) && strings.HasPrefix(r.Reason, "the profile denies")
	})
}

// questionsAbout are what a policy answers about one path of the host.
func questionsAbout(h *fakeHost, policy sandbox.Policy, at string) []question {
	a := accessOf(policy, at)
	k := h.kinds[at]
	asks := []question{{"file-read-data", at, k, a.read}, {"file-read-metadata", at, k, a.look}}
	if k == directory {
		in := accessOf(policy, join(at, "any.thing"))
		asks = append(asks, []question{{"file-write-create", join(at, "any.thing"), regular, in.write}, {"file-read-data", join(at, "any.thing"), regular, in.read}}...)
	} else {
		asks = append(asks, []question{{"file-write-data", at, k, a.write}}...)
		if a.read { // what cannot be read is not executed either
			asks = append(asks, question{"process-exec", at, k, a.exec})
		}
		if up := accessOf(policy, path.Dir(at)); up.write && a.write {
			asks = append(asks, question{"file-write-unlink", at, k, !mounted(policy, at)})
		}
	}
	return asks
}

// TestPoliciesMeanWhatProfilesSay is held on many random profiles.
func TestPoliciesMeanWhatProfilesSay(t *testing.T) {
	kerneltest.Long(t)
	n := kerneltest.Amount(t, 50, 200, 400)
	if raced {
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
