//go:build linux && (amd64 || arm64)

package process

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	golandlock "github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/landlock"
)

// engines are the two ways to put one ruleset on a thread. They must agree.
var engines = map[string]func(landlock.Ruleset) error{
	"this library, on one thread": func(r landlock.Ruleset) error {
		f, err := landlock.Build(r)
		if err != nil {
			return err
		}
		defer f.Close()
		return landlock.RestrictThread(int(f.Fd()), 0)
	},
	"go-landlock, on all threads": Restrict,
}

func TestKernelBothEnginesGiveTheSameOutcomes(t *testing.T) {
	needRestrict(t)
	for engine, restrict := range engines {
		t.Run(engine, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
					dir := tree(t)
					parent := os.Getppid()
					free := unix.Kill(parent, 0) // an ordinary user may not signal a parent that is root
					r := held(t, landlock.Ruleset{Paths: []landlock.PathRule{
						{Path: dir + "/in", Access: landlock.FSReadWrite},
						{Path: dir + "/out/file", Access: landlock.FSRead | landlock.FSRefer}, // a file: the directory's rights are left out
						{Path: "/dev", Access: landlock.FSRead | landlock.FSWrite},
					}})
					if err := restrict(r); err != nil {
						t.Fatal(err)
					}
					want := expected(r)
					if r.Scoped()&landlock.ScopeSignal == 0 {
						want["signal"] = free
					}
					for act, try := range tries(dir, parent) {
						if got := fmt.Sprint(try()); got != fmt.Sprint(want[act]) {
							t.Errorf("%s: %s, want %v", act, got, want[act])
						}
					}
				})
			})
		})
	}
}

// tries are the acts by which the engines are compared.
func tries(dir string, parent int) map[string]func() error {
	open := func(path string, flags int) func() error {
		return func() error { return openAt(unix.AT_FDCWD, path, flags) }
	}
	return map[string]func() error{
		"read inside":            open(dir+"/in/file", unix.O_RDONLY),
		"write inside":           open(dir+"/in/file", unix.O_WRONLY),
		"read the granted file":  open(dir+"/out/file", unix.O_RDONLY),
		"write the granted file": open(dir+"/out/file", unix.O_WRONLY),
		"list outside":           open(dir+"/out", unix.O_RDONLY|unix.O_DIRECTORY),
		"list the root":          open("/", unix.O_RDONLY|unix.O_DIRECTORY),
		"truncate outside":       func() error { return unix.Truncate(dir+"/out/file", 0) },
		"make a pipe inside":     func() error { return unix.Mkfifo(dir+"/in/fifo", 0o600) },
		"make a pipe outside":    func() error { return unix.Mkfifo(dir+"/out/fifo", 0o600) },
		"make a device inside":   func() error { return unix.Mknod(dir+"/in/char", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
		"link between":           func() error { return unix.Link(dir+"/in/file", dir+"/in/sub/link") },
		"ioctl on a device": func() error {
			fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
			return err
		},
		"bind":   bindAny(landlock.Ruleset{}).try,
		"signal": func() error { return unix.Kill(parent, 0) },
	}
}

// expected is what each act gives under r; nil is success.
func expected(r landlock.Ruleset) map[string]error {
	want := map[string]error{
		"write the granted file": unix.EACCES, "list outside": unix.EACCES, "list the root": unix.EACCES,
		"make a pipe outside": unix.EACCES, "make a device inside": unix.EACCES, "link between": unix.EXDEV,
	}
	if r.HandledFS()&landlock.FSTruncate != 0 {
		want["truncate outside"] = unix.EACCES
	}
	if r.HandledFS()&landlock.FSIoctlDev != 0 {
		want["ioctl on a device"] = unix.EACCES
	}
	if r.HandledNet()&landlock.NetBindTCP != 0 {
		want["bind"] = unix.EACCES
	}
	if r.Scoped()&landlock.ScopeSignal != 0 {
		want["signal"] = unix.EPERM
	}
	return want
}

func TestGoLandlockIsAskedForExactlyTheRuleset(t *testing.T) {
	r := landlock.Ruleset{UnhandledFS: landlock.FSIoctlDev, UnhandledNet: landlock.NetBindUDP, Unscoped: landlock.ScopeSignal}
	want := golandlock.Config{HandledAccessFS: golandlock.AccessFSSet(landlock.FSAll &^ landlock.FSIoctlDev),
		HandledAccessNet: golandlock.AccessNetSet(landlock.NetAll &^ landlock.NetBindUDP), Scoped: golandlock.ScopedSet(landlock.ScopeAbstractUnixSocket)}
	if got := configOf(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !reflect.DeepEqual(configOf(landlock.Ruleset{}), golandlock.V11) {
		t.Errorf("the strictest ruleset is %v, go-landlock's strictest %v", configOf(landlock.Ruleset{}), golandlock.V11)
	}
}
