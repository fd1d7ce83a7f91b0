package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _, _, _ = offer(programs, "swap a hidden name", swapHidden), offer(programs, "fail in odd words", failInOddWords), offer(programs, "fail to change names", failToChange)

// TestKernelAttackUnderWatch: what is watched is held as well as without: the acts of attacks on files, with Files.Watch.
func TestKernelAttackUnderWatch(t *testing.T) {
	kerneltest.Heavy(t) // the acts of other attacks again
	kerneltest.Parallel(t)
	for _, list := range []string{"reading", "changing", "protected names"} {
		t.Run(list, func(t *testing.T) {
			eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
				attackWith(t, list, w, func(_ string, p *Policy) {
					if list == "protected names" {
						p.Files.Protect = policy.Protect{}
					}
					p.Files.Watch = true
				})
			})
		})
	}
}

// swapHidden opens one path for reading while another thread makes it a link to a hidden file, an ordinary file, and back:
// the open of a hidden name is served, and never goes on by itself.
func swapHidden(args []string) {
	var done atomic.Bool
	link := func(to string) {
		unix.Symlink(to, "next")
		unix.Rename("next", "swapped")
	}
	link("file")
	ended := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		for !done.Load() {
			link(".env")
			link("file")
		}
		close(ended)
	}()
	n, _ := strconv.Atoi(args[1])
	for range n {
		if b, _ := os.ReadFile("swapped"); strings.Contains(string(b), "secret") {
			fmt.Println("ESCAPE: the hidden file was read")
		}
	}
	done.Store(true)
	<-ended
	b, err := os.ReadFile("swapped") // the link to an ordinary file
	fmt.Println("done", string(b) == "original\n", err)
}

func TestKernelAttackWatchedPathIsSwapped(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		dir := filepath.Join(base, "write", "0")
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, base, w)
		p.Files.Watch, p.Files.HideNames = true, []string{".env"}
		c := hostile(t, attackSandbox(t, p, w), "swap a hidden name", dir, "300")
		c.Dir = dir
		if out, err := c.CombinedOutput(); string(out) != "done true <nil>\n" || err != nil {
			t.Errorf("%s%v", out, err)
		}
	})
}

// failInOddWords looks at paths outside that are no plain text, as a process with a name of the same kind.
func failInOddWords(args []string) {
	os.WriteFile("/proc/self/comm", []byte("\x1b]0;x\a\n"), 0)
	for _, name := range oddNames {
		_, err := os.ReadFile(filepath.Join(args[0], name))
		fmt.Println(err != nil)
	}
	unix.Access(args[0]+"/"+strings.Repeat("x/", 2000), unix.F_OK) // longer than is recorded
	unix.Access("", unix.F_OK)
	unix.Access(args[0]+"/"+strings.Repeat("y", 300), unix.F_OK)
}

var oddNames = []string{"\x1b[2J\x1b[31mred", "line\n+   \"etc\"", "\xff\xfe\x00"[:2], "quote\" x", "\u202eevil"}

func TestKernelWatchPrintsHostileText(t *testing.T) {
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		s, base := watchedSandbox(t, w)
		dir := filepath.Join(base, "secret", "0")
		for _, name := range oddNames {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		c := hostile(t, s, "fail in odd words", dir)
		if out, err := c.CombinedOutput(); strings.TrimSpace(string(out)) != strings.TrimSpace(strings.Repeat("true\n", len(oddNames))) || err != nil {
			t.Fatalf("%s%v", out, err)
		}
		r := c.Report()
		said := r.Suggest()
		for _, name := range oddNames {
			if !slices.ContainsFunc(said.Add, func(a policy.Widening) bool { return a.Value == filepath.Join(dir, name) }) {
				t.Errorf("%q is not suggested as it is: %+v", name, said)
			}
		}
		for _, text := range []string{r.String(), said.String()} {
			if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && (c < ' ' || c == 0x7f || c == 0x202e || c == 0xfffd) }); i >= 0 {
				t.Errorf("printed: %q", text[i:min(len(text), i+40)])
			}
		}
		if n := strings.Count(said.String(), "\n+ "); n != len(said.Add) {
			t.Errorf("%d lines for %d values:\n%s", n, len(said.Add), said)
		}
	})
}

// failToChange tries what changes names in a directory that is shown to be read alone, and in one that is not shown.
func failToChange(args []string) {
	for _, dir := range args {
		for _, err := range []error{
			unix.Mkdir(dir+"/new", 0o755), unix.Rename(dir+"/file", dir+"/other"), unix.Unlink(dir + "/file"), unix.Symlink("x", dir+"/link"),
			unix.Mkdir(dir+"/absent/new", 0o755),
		} {
			fmt.Println(err == nil)
		}
	}
}

// TestKernelWatchTellsWhatChangesNames: where names are protected, calls that change names are served, and watched when they fail.
func TestKernelWatchTellsWhatChangesNames(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		p := attackPolicy(t, base, w)
		p.Files.Watch, p.Files.Protect = true, policy.Protect{}
		s := attackSandbox(t, p, w)
		read, secret := filepath.Join(base, "read", "0"), filepath.Join(base, "secret", "0")
		c := hostile(t, s, "fail to change names", read, secret)
		if out, err := c.CombinedOutput(); strings.Contains(string(out), "true") || err != nil {
			t.Fatalf("%s%v", out, err)
		}
		r := c.Report()
		for _, dir := range []string{read, secret} {
			for operation, name := range map[string]string{"make a directory": "new", "rename": "file", "remove": "file", "make a symbolic link": "link"} {
				i := slices.IndexFunc(r.Violations, func(v Violation) bool { return v.Operation == operation && v.Path == filepath.Join(dir, name) })
				if i < 0 || (r.Violations[i].Widening != policy.Widening{Field: "Files.Write", Value: dir, Tree: true}) {
					t.Errorf("%s of %s/%s: %d\n%+v", operation, dir, name, i, r.Violations)
				}
			}
		}
		if slices.ContainsFunc(r.Violations, func(v Violation) bool { return strings.Contains(v.Path, "absent") }) {
			t.Errorf("recorded, but the same outside: %v", r.Violations)
		}
	})
}
