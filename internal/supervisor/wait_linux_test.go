package supervisor

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelPutOffOpens: an open waits while a file is leased, as another sandbox's supervisor does when it judges an index. If the file has a
// protected name by then, it is not opened.
func TestKernelPutOffOpens(t *testing.T) {
	kerneltest.Long(t)
	signal.Ignore(unix.SIGIO) // by which the kernel asks for a lease back
	const repo = `git init -q .; echo a >a; git add a; git commit -qm one; cp .git/index .git/index.evil; echo plain >plain; mkdir d; cp .git/index d/x`
	cases := []struct {
		name, file, to, open string
		opens                bool
	}{
		{"an index", ".git/index.evil", ".git/index", `echo EVIL >>.git/index.evil`, false},
		{"an index by a descriptor", ".git/index.evil", ".git/index", `exec 5<.git/index.evil; echo EVIL >>/proc/self/fd/5`, false},
		{"an index that is cut", ".git/index.evil", ".git/index", `echo EVIL >.git/index.evil`, false},
		{"an index from elsewhere", "d/x", ".git/index", `exec 5<d/x; echo EVIL 1<>/proc/self/fd/5`, false},
		{"a plain file", "plain", "plain", `echo EVIL >>plain`, true},
		{"a plain file that is cut", "plain", "plain", `echo EVIL >plain; ! grep plain plain`, true},
		{"a file of a git directory", ".git/index.evil", ".git/index.good", `exec 5<.git/index.evil; echo EVIL >>/proc/self/fd/5`, true},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, repo)
				from, to := filepath.Join(dir, c.file), filepath.Join(dir, c.to)
				free := leased(t, from)
				type end struct {
					out  string
					code int
				}
				done := make(chan end)
				go func() {
					out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", c.open}})
					done <- end{out, code}
				}()
				err := free(func() error { return os.Rename(from, to) })
				e := <-done
				if err != nil || (e.code == 0) != c.opens {
					t.Errorf("%v; exit %d\n%s", err, e.code, e.out)
				}
				if exec.Command("grep", "-q", "EVIL", to).Run() == nil != c.opens {
					t.Errorf("written: %v\n%s", !c.opens, e.out)
				}
				if out, err := exec.Command("git", "-c", "safe.directory=*", "-C", dir, "ls-files").Output(); err != nil || string(out) != "a\n" {
					t.Errorf("%q, %v", out, err)
				}
			})
		}
	}
}

// leased takes a lease on a file. The function that it returns waits until an open asks for it back, and lets go of it then, after a deed.
func leased(t *testing.T, path string) func(deed func() error) error {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		t.Fatal(err)
	}
	return func(deed func() error) error {
		defer f.Close()
		for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Millisecond) {
			if kind, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0); err != nil || kind == unix.F_UNLCK {
				break
			}
		}
		return deed()
	}
}

// TestKernelAnIndexOfTwoSandboxes: what one sandbox's supervisor judges as an index is changed by the tool of another.
func TestKernelAnIndexOfTwoSandboxes(t *testing.T) {
	kerneltest.Long(t)
	for user, uid := range users(t) {
		for _, how := range []string{"replace", "link", "descriptor"} {
			t.Run(how+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, `git init -q .`)
				other := make(chan string)
				go func() {
					out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `"$SELF" bendindex ` + how}, Env: []string{roleEnv + "=act"}})
					other <- out
				}()
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `"$SELF" putindex; : >stop`}, Env: []string{roleEnv + "=act"}})
				if out += <-other; strings.Contains(out, "UNEXPECTED") || strings.Contains(out, "supervisor test:") {
					t.Error(out)
				}
			})
		}
	}
}
