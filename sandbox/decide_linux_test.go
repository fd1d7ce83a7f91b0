package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// asked is a Files.Decide that notes its questions about the grounds. What else a program of this machine wants is denied.
type asked struct {
	mu     sync.Mutex
	list   []policy.FileRequest
	answer func(context.Context, policy.FileRequest) policy.Verdict
}

func (a *asked) decide(ctx context.Context, r policy.FileRequest) policy.Verdict {
	if !strings.Contains(r.Path, "/secret/") && !strings.HasPrefix(r.Path, "/sys/") && !strings.HasPrefix(r.Path, "/proc/") {
		return policy.Verdict{}
	}
	a.mu.Lock()
	a.list = append(a.list, r)
	a.mu.Unlock()
	return a.answer(ctx, r)
}

// take returns what was asked since it was called last, without the processes.
func (a *asked) take() (list []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.list {
		list = append(list, r.String())
	}
	a.list = nil
	return list
}

// decidingSandbox is watchedSandbox with a Decide.
func decidingSandbox(t *testing.T, w walls, a *asked, change func(p *Policy, base string)) (*Sandbox, string) {
	t.Helper()
	base := makeGrounds(t, 1)
	for p, to := range map[string]string{"write/to-file": base + "/secret/0/plain", "read/to-secret": "../secret"} {
		if err := os.Symlink(to, filepath.Join(base, p)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"plain", "swapped", "linked", ".bashrc", ".env", "bare/HEAD", "bare/config", "\x1b[31mred"} {
		p = filepath.Join(base, "secret/0", p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte("original\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"secret/0/bare/objects", "secret/0/bare/refs", "secret/hidden"} {
		if err := os.Mkdir(filepath.Join(base, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(base, "secret/0")
	if err := errors.Join(os.Link(secret+"/linked", secret+"/link"), unix.Mkfifo(secret+"/fifo", 0o644)); err != nil {
		t.Fatal(err)
	}
	p := attackPolicy(t, base, w)
	p.Files.Watch, p.Files.Decide = true, a.decide
	if change != nil {
		change(&p, base)
	}
	return attackSandbox(t, p, w), base
}

func always(v policy.Verdict) func(context.Context, policy.FileRequest) policy.Verdict {
	return func(context.Context, policy.FileRequest) policy.Verdict { return v }
}

// TestKernelDecideGivesAFile: to be read, by whatever path; to be written; for as long as the verdict says; and with a no, or for another file, nothing.
func TestKernelDecideGivesAFile(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		for _, lasts := range []policy.Lifetime{policy.Once, policy.Run, policy.Sandbox} {
			a := &asked{answer: always(policy.Verdict{Allow: true, For: lasts})}
			var seen observed
			s, base := decidingSandbox(t, w, a, func(p *Policy, _ string) { p.Observe = seen.observe })
			file := filepath.Join(base, "secret", "0", "plain")
			run := func() string {
				t.Helper()
				c := s.Command("/bin/sh", "-c", `cat "$0" && cat "$0"`, file)
				c.Dir = "/"
				out, err := c.CombinedOutput()
				if string(out) != "original\noriginal\n" || err != nil {
					t.Fatalf("%s: %q, %v\n%s", lasts, out, err, c.Report())
				}
				if text := c.Report().String(); !strings.Contains(text, "allowed: read "+file) {
					t.Errorf("the report does not say it:\n%s", text)
				}
				return strings.Join(a.take(), "; ")
			}
			q := "read " + file
			want := map[policy.Lifetime][2]string{policy.Once: {q + "; " + q, q + "; " + q}, policy.Run: {q, q}, policy.Sandbox: {q, ""}}[lasts]
			if got := [2]string{run(), run()}; got != want {
				t.Errorf("%s: asked %q, want %q", lasts, got, want)
			}
			events := slices.DeleteFunc(seen.take(), func(e policy.Event) bool {
				return e.Kind == policy.EventDenied || e.File != nil && e.File.Path != file
			})
			if kinds := kindsOf(events); lasts == policy.Run && kinds != "started asked answered ended started asked answered ended" {
				t.Errorf("told: %s", kinds)
			}
		}
	})
}

// TestKernelAnAnswerForTheRunIsTheSessions: its other commands, and its Files, do not ask again.
func TestKernelAnAnswerForTheRunIsTheSessions(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		if w.name == noLandlock {
			w.may = []Bound{policy.BoundProcesses} // a session's commands are kept from each other by Landlock
		}
		a := &asked{answer: always(policy.Verdict{Allow: true, For: policy.Run})}
		s, base := decidingSandbox(t, w, a, nil)
		n, err := s.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		file := filepath.Join(base, "secret", "0", "plain")
		for range 2 {
			c := n.Command("/bin/cat", file)
			c.Dir = "/"
			if out, err := c.CombinedOutput(); string(out) != "original\n" || err != nil {
				t.Fatalf("%q, %v\n%s", out, err, c.Report())
			}
		}
		if got := a.take(); !slices.Equal(got, []string{"read " + file}) {
			t.Errorf("asked %q", got)
		}
	})
}

// TestKernelDecideGivesAFileToBeWritten: appended to, and by a link; what is there already, not more.
func TestKernelDecideGivesAFileToBeWritten(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		a := &asked{answer: always(policy.Verdict{Allow: true})}
		s, base := decidingSandbox(t, w, a, nil)
		file, link := filepath.Join(base, "secret", "0", "plain"), filepath.Join(base, "write", "to-file")
		c := s.Command("/bin/sh", "-c", `echo appended >>"$0"; echo by a link >>"$1"; echo no >"$0.new"; exec 3<>"$0"; echo XX >&3; cat "$1"`, file, link)
		c.Dir = "/"
		out, err := c.CombinedOutput()
		const want = "XX\nginal\nappended\nby a link\n"
		if b, _ := os.ReadFile(file); string(b) != want || !strings.HasSuffix(string(out), want) || err != nil {
			t.Errorf("%q, %v; %q\n%s", out, err, b, c.Report())
		}
		if _, err := os.Lstat(file + ".new"); err == nil {
			t.Error("a file was made")
		}
		if got, want := a.take(), []string{"write " + file, "write " + file, "write " + file, "read " + file}; !slices.Equal(got, want) {
			t.Errorf("asked %q", got)
		}
	})
}

// TestKernelDecideSaysNo, in whatever way: the open fails as without it, and the report says why.
func TestKernelDecideSaysNo(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		for name, test := range map[string]struct {
			answer func(context.Context, policy.FileRequest) policy.Verdict
			why    string
			within time.Duration
		}{
			"no":               {always(policy.Verdict{Reason: "the user has said no"}), "the user has said no", 0},
			"a panic":          {func(context.Context, policy.FileRequest) policy.Verdict { panic("decide") }, "panicked", 0},
			"it never returns": {func(context.Context, policy.FileRequest) policy.Verdict { select {} }, "did not answer within 100ms", 100 * time.Millisecond},
		} {
			a := &asked{answer: test.answer}
			s, base := decidingSandbox(t, w, a, func(p *Policy, _ string) { p.Files.Patience = test.within })
			file := filepath.Join(base, "secret", "0", "plain")
			c := s.Command("/bin/sh", "-c", `cat "$0"; echo and on`, file)
			c.Dir = "/"
			out, err := c.CombinedOutput()
			if strings.Contains(string(out), "original") || !strings.HasSuffix(string(out), "and on\n") || err != nil {
				t.Errorf("%s: %q, %v", name, out, err)
			}
			v := c.Report().Violations
			if i := slices.IndexFunc(v, func(v Violation) bool {
				return v.Path == file && v.Rule == "Decide" && strings.Contains(v.Why, test.why)
			}); i < 0 {
				t.Errorf("%s: %+v", name, v)
			}
		}
	})
}
