package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _, _ = offer(programs, "deeds", doDeeds), offer(programs, "flood of looks", floodOfLooks)

// watchedDeeds change nothing outside. Each is the name of an operation in reports, behind a number.
var watchedDeeds = map[string]func(dir int, p string) error{
	"1 look at":          func(dir int, p string) error { return unix.Fstatat(dir, p, &unix.Stat_t{}, 0) },
	"2 look at":          func(dir int, p string) error { return unix.Fstatat(dir, p, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW) },
	"3 look at":          func(dir int, p string) error { return unix.Faccessat(dir, p, unix.F_OK, 0) },
	"4 look at":          func(dir int, p string) error { return unix.Statx(dir, p, 0, unix.STATX_BASIC_STATS, &unix.Statx_t{}) },
	"5 open for reading": func(dir int, p string) error { return tryOpen(dir, p, unix.O_RDONLY) },
	"6 open for reading": func(dir int, p string) error { return tryOpen(dir, p, unix.O_RDONLY|unix.O_NOFOLLOW) },
	"7 open for writing": func(dir int, p string) error { return tryOpen(dir, p, unix.O_WRONLY) },
	"8 execute":          execAt,
}

func tryOpen(dir int, p string, flags int) error {
	fd, err := unix.Openat(dir, p, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// execAt executes a program that ends at once, or has no format that could be executed.
func execAt(dir int, p string) error {
	if dir != unix.AT_FDCWD {
		return nil
	}
	pid, err := syscall.ForkExec(p, []string{p}, &syscall.ProcAttr{Env: []string{"HOLDFAST_NOTHING=1"}})
	if err == nil {
		syscall.Wait4(pid, nil, 0, nil)
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return nil
	}
	return err
}

// doDeeds reads lines of a deed's name, "." or a directory that paths begin at, and a path, and prints what became of each.
func doDeeds(args []string) {
	f, err := os.Open(args[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	lines := bufio.NewScanner(f)
	for i := 0; lines.Scan(); i++ {
		w := strings.Split(lines.Text(), "\t")
		dir := unix.AT_FDCWD
		if w[1] != "." {
			if dir, err = unix.Open(w[1], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
				fmt.Println(i, "no directory")
				continue
			}
		}
		errno := syscall.Errno(0)
		errors.As(watchedDeeds[w[0]](dir, w[2]), &errno)
		fmt.Println(i, int(errno))
		if dir != unix.AT_FDCWD {
			unix.Close(dir)
		}
	}
}

// randomDeeds makes a list for doDeeds on paths below base, of every spelling.
func randomDeeds(r *rand.Rand, base string, n int) (lines []string) {
	names := slices.Sorted(func(yield func(string) bool) {
		for k := range watchedDeeds {
			if !yield(k) {
				return
			}
		}
	})
	parts := []string{"read", "read/0", "read/0/file", "write/0/file", "write/0", "secret", "secret/0", "secret/0/file", "secret/program", "secret/closed", "absent", "absent/x", "secret/absent",
		"read/to-secret", "read/to-secret/0/file", "write/to-file", "read/nowhere", "secret/to-read/file", "read/0/file/x", "read/0/program", "read/around"}
	for range n {
		p := parts[r.IntN(len(parts))]
		switch r.IntN(5) {
		case 0:
			p = path.Dir(p) + "/./" + path.Base(p)
		case 1:
			p = "read/0/../../" + p
		case 2:
			p = "secret//../" + p
		}
		dir := []string{".", base, base + "/read", base + "/write"}[r.IntN(4)]
		switch dir {
		case ".":
			p = base + "/" + p
		case base:
		default:
			p = "../" + p
		}
		lines = append(lines, names[r.IntN(len(names))]+"\t"+dir+"\t"+p)
	}
	return lines
}

// leads is a path without links, but for the last if it is the link that is meant.
func leads(p string, follow bool) string {
	if real, err := filepath.EvalSymlinks(p); err == nil && follow {
		return real
	}
	dir, err := filepath.EvalSymlinks(p[:strings.LastIndex(p, "/")+1])
	if err != nil {
		return p
	}
	return filepath.Join(dir, filepath.Base(p))
}

func outcomesOf(t *testing.T, out []byte, n int) []syscall.Errno {
	t.Helper()
	list := make([]syscall.Errno, n)
	for line := range strings.Lines(string(out)) {
		var i, errno int
		if _, err := fmt.Sscan(line, &i, &errno); err == nil {
			list[i] = syscall.Errno(errno)
		}
	}
	return list
}

func watchedSandbox(t *testing.T, w walls) (*Sandbox, string) {
	t.Helper()
	base := makeGrounds(t, 1)
	exe, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	for p, mode := range map[string]os.FileMode{"secret/program": 0o755, "read/0/program": 0o755, "secret/closed": 0} {
		if err := os.WriteFile(filepath.Join(base, p), exe, mode); err != nil {
			t.Fatal(err)
		}
	}
	for p, to := range map[string]string{"read/to-secret": "../secret", "write/to-file": base + "/secret/0/file", "read/nowhere": "nowhere at all", "secret/to-read": "../read/0", "read/around": "around"} {
		if err := os.Symlink(to, filepath.Join(base, p)); err != nil {
			t.Fatal(err)
		}
	}
	p := attackPolicy(t, base, w)
	p.Files.Watch = true
	return attackSandbox(t, p, w), base
}

// TestKernelWatchTellsWhatFails: of random deeds, those that fail inside because a path is not shown, and would not outside, are
// recorded, and no others.
func TestKernelWatchTellsWhatFails(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		s, base := watchedSandbox(t, w)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		lines := randomDeeds(rand.New(rand.NewPCG(seed, 1)), base, 400)
		list := filepath.Join(base, "read", "list")
		if err := os.WriteFile(list, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		bare, err := hostileBare(t, "deeds", list).CombinedOutput()
		if err != nil {
			t.Fatalf("%s%v", bare, err)
		}
		c := hostile(t, s, "deeds", list)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s%v\n%v", out, err, c.Report())
		}
		inside, outside := outcomesOf(t, out, len(lines)), outcomesOf(t, bare, len(lines))
		said, want, same := map[string]int{}, map[string]int{}, map[string]bool{}
		for _, v := range c.Report().Violations {
			if strings.HasPrefix(v.Path, base) {
				said[v.Operation+" "+leads(v.Path, false)] += v.Count
				said[v.Operation+" "+leads(v.Path, true)] += v.Count
			}
		}
		for i, line := range lines {
			l := strings.Split(line, "\t")
			p := l[2]
			if l[1] != "." {
				p = l[1] + "/" + p
			}
			key := l[0][2:] + " " + leads(p, l[0][0] != '2' && l[0][0] != '6')
			failed := inside[i] == unix.ENOENT || inside[i] == unix.EACCES || inside[i] == unix.EROFS
			if failed && outside[i] == 0 {
				want[key]++
				if said[key] == 0 {
					t.Errorf("not recorded: %s (%v inside)", line, inside[i])
				}
			} else if info, err := os.Lstat(p); err == nil && info.Mode()&os.ModeSymlink != 0 {
				continue // other deeds of this kind are about what it leads to
			} else if inside[i] == outside[i] && said[key] > 0 {
				same[key] = true // which is only wrong if no other deed of this kind and place failed
			}
		}
		for key := range same {
			if want[key] == 0 {
				t.Errorf("recorded, but the same outside: %s", key)
			}
		}
		t.Logf("%d of %d deeds failed inside alone", len(want), len(lines))
	})
}

// floodOfLooks looks at args[1] absent paths, then reads args[0].
func floodOfLooks(args []string) {
	n, _ := strconv.Atoi(args[1])
	for i := range n {
		unix.Access("/absent/"+strconv.Itoa(i), unix.F_OK)
	}
	_, err := os.ReadFile(args[0])
	fmt.Println(err != nil)
}

// TestKernelWatchSurvivesFloods: looks at what is absent push nothing out, and of different denials the first 512 are kept.
func TestKernelWatchSurvivesFloods(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		s, base := watchedSandbox(t, w)
		secret := filepath.Join(base, "secret", "0", "file")
		c := hostile(t, s, "flood of looks", secret, "1900") // the ring has room for 2,048
		if out, err := c.CombinedOutput(); string(out) != "true\n" || err != nil {
			t.Fatalf("%s%v", out, err)
		}
		r := c.Report()
		if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Path == secret && v.Operation == "open for reading" }) {
			t.Errorf("lost: %v", r)
		}
		for _, v := range r.Violations {
			if strings.HasPrefix(v.Path, "/absent") {
				t.Errorf("recorded: %v", v)
			}
		}
		var lines bytes.Buffer
		for i := range 700 {
			name := filepath.Join(base, "secret", "0", strconv.Itoa(i))
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&lines, "5 open for reading\t.\t%s\n", name)
		}
		list := filepath.Join(base, "read", "list")
		if err := os.WriteFile(list, lines.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		c = hostile(t, s, "deeds", list)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s%v", out, err)
		}
		r = c.Report()
		kept := 0
		for _, v := range r.Violations {
			if strings.HasPrefix(v.Path, base+"/secret/0/") {
				kept++
			}
		}
		if notes := strings.Join(r.Bound(policy.BoundFiles).Notes, "\n"); kept < 500 || kept > 512 || !strings.Contains(notes, "denials more than are listed") {
			t.Errorf("%d are listed: %s", kept, notes)
		}
	})
}
