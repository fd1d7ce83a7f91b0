package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _ = offer(attacks, "protected names", protectedActs)

// noSupervisor is the set of walls whose supervisor is left out behind the plan's back.
const noSupervisor = "without the supervisor"

var guardless = []string{noSupervisor}

// protectedActs make, in a writable directory, names that something outside
// would obey. Without the supervisor each must succeed.
var protectedActs = []act{
	{name: "make an ordinary file", works: true, try: func(f ground) error { return os.WriteFile(f.write+"/plain", []byte("x"), 0o644) }},
	{name: "make a repository's directory", works: true, try: func(f ground) error { return os.Mkdir(f.write+"/.git", 0o755) }},
	{name: "make a settings file that did not exist", unheld: guardless, try: func(f ground) error { return plant(f.write + "/.envrc") }},
	{name: "make a file by its ending", unheld: guardless, try: func(f ground) error { return plant(f.write + "/x.code-workspace") }},
	{name: "make a build file", unheld: guardless, try: func(f ground) error { return plant(f.write + "/.yarnrc.yml") }},
	{name: "make a settings directory that did not exist", unheld: guardless, try: func(f ground) error { return os.MkdirAll(f.write+"/.claude", 0o755) }},
	{name: "make one in a tree of the tool's", works: true, try: func(f ground) error {
		return errors.Join(os.MkdirAll(f.write+"/new/a", 0o755), plant(f.write+"/new/a/.bashrc"))
	}},
	{name: "make one of which a directory of the tool's is the first component", unheld: guardless, try: func(f ground) error {
		return errors.Join(os.Mkdir(f.write+"/.cargo", 0o755), plant(f.write+"/.cargo/config.toml"))
	}},
	{name: "move one out of a tree of the tool's", unheld: guardless, try: func(f ground) error {
		if err := errors.Join(os.Mkdir(f.write+"/new", 0o755), plant(f.write+"/new/.bashrc")); err != nil {
			return err
		}
		return os.Rename(f.write+"/new/.bashrc", f.write+"/.bashrc")
	}},
	{name: "make a hook", unheld: guardless, try: func(f ground) error {
		return errors.Join(os.MkdirAll(f.write+"/.git/hooks", 0o755), plant(f.write+"/.git/hooks/pre-commit"))
	}},
	{name: "move a file to a hook's name", unheld: guardless, try: func(f ground) error {
		if err := errors.Join(os.Mkdir(f.write+"/.git", 0o755), plant(f.write+"/.git/x")); err != nil {
			return err
		}
		os.Mkdir(f.write+"/.git/hooks", 0o755)
		return os.Rename(f.write+"/.git/x", f.write+"/.git/hooks/pre-commit")
	}},
	{name: "move a directory with hooks in it to a repository's name", unheld: guardless, try: func(f ground) error {
		if err := errors.Join(os.MkdirAll(f.write+"/new/hooks", 0o755), plant(f.write+"/new/hooks/pre-commit")); err != nil {
			return err
		}
		return os.Rename(f.write+"/new", f.write+"/.git")
	}},
	{name: "exchange names", unheld: guardless, try: func(f ground) error {
		return errors.Join(plant(f.write+"/.profile"), unix.Renameat2(unix.AT_FDCWD, f.write+"/file", unix.AT_FDCWD, f.write+"/.profile", unix.RENAME_EXCHANGE))
	}},
	{name: "link a file to a name", unheld: guardless, try: func(f ground) error { return os.Link(f.write+"/file", f.write+"/.zshrc") }},
	{name: "make a symbolic link of a name", unheld: guardless, try: func(f ground) error { return os.Symlink("file", f.write+"/.mcp.json") }},
	{name: "make a name through a dangling link", unheld: guardless, try: func(f ground) error {
		if err := os.Symlink(".envrc", f.write+"/to"); err != nil {
			return err
		}
		return plant(f.write + "/to")
	}},
	{name: "make a name through /proc/self/cwd", unheld: guardless, try: func(f ground) error {
		return errors.Join(os.Chdir(f.write), plant("/proc/self/cwd/.envrc"))
	}},
	{name: "make a name through /proc/self/root", unheld: guardless, try: func(f ground) error { return plant("/proc/self/root" + f.write + "/.envrc") }},
	{name: "make a name through a descriptor of its directory", unheld: guardless, try: func(f ground) error {
		dir, err := unix.Open(f.write, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return plant(fmt.Sprintf("/proc/self/fd/%d/.envrc", dir))
	}},
	{name: "give a nameless file a name", unheld: guardless, try: func(f ground) error {
		fd, err := unix.Open(f.write, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, f.write+"/.envrc", unix.AT_SYMLINK_FOLLOW)
	}},
	{name: "make a name by openat2", unheld: guardless, try: func(f ground) error {
		how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, Mode: 0o644}
		_, err := unix.Openat2(unix.AT_FDCWD, f.write+"/.envrc", &how)
		return err
	}},
	{name: "make a name as a pipe", unheld: guardless, try: func(f ground) error { return unix.Mkfifo(f.write+"/.envrc", 0o600) }},
	{name: "make a name as a socket", unheld: guardless, try: func(f ground) error {
		if err := os.Chdir(f.write); err != nil { // an address holds 107 bytes
			return err
		}
		l, err := net.Listen("unix", ".envrc")
		if err != nil {
			return shortNet(err)
		}
		return l.Close()
	}},
	{name: "complete a git directory with a socket", unheld: guardless, try: func(f ground) error {
		if err := errors.Join(os.Chdir(f.write), os.MkdirAll("d/objects", 0o755), os.WriteFile("d/HEAD", []byte("ref: refs/heads/x\n"), 0o644), plant("d/config")); err != nil {
			return err
		}
		l, err := net.Listen("unix", "d/refs")
		if err != nil {
			return shortNet(err)
		}
		return l.Close()
	}},
	{name: "make a name in a mount namespace of one's own", never: "the profile refuses the namespace, and the supervisor serves nobody in another", try: func(f ground) error {
		if err := inAChild(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS, 0); err != nil {
			return err
		}
		return errors.New("it is made, and nothing more is tried")
	}},
	{name: "make a name by a path that changes while it is read", unheld: guardless, try: flip},
}

// plant makes a file and writes into it.
func plant(path string) error { return shortError(os.WriteFile(path, []byte("evil\n"), 0o755)) }

// flip opens a path whose last bytes another thread keeps changing, until the
// protected name is there. Without a supervisor it is made by the first try for it.
func flip(f ground) error {
	path := append([]byte(f.write+"/.envrX"), 0)
	last := &path[len(path)-2]
	done := make(chan bool)
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				*last ^= 'X' ^ 'c'
			}
		}
	}()
	for range 5000 {
		fd, _, _ := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&path[0])), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644, 0, 0)
		if int(fd) >= 0 {
			unix.Close(int(fd))
		}
		if _, err := os.Lstat(f.write + "/.envrc"); err == nil {
			return nil
		}
	}
	// A busy machine may not have run the other thread at all: without a supervisor the name is made by a path that stands still, too.
	if plant(f.write+"/.envrc") == nil {
		return nil
	}
	return errors.New("it never came to be")
}

func TestKernelAttackProtectedNames(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	protect := func(base string, p *Policy) { p.Files.Protect = policy.Protect{} }
	eachWall(t, append(allSets[:len(allSets):len(allSets)], inContainer, walls{name: noSupervisor, drop: plan.Supervisor}), func(t *testing.T, w walls) {
		kerneltest.Need(t, kerneltest.HasSeccompFilter)
		attackWith(t, "protected names", w, protect)
	})
	// Whatever the tool has said: nothing bears such a name on the disk.
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		base := ""
		attackWith(t, "protected names", w, func(b string, p *Policy) {
			base = b
			p.Files.Protect = policy.Protect{}
		})
		for _, name := range []string{".envrc", ".claude", ".bashrc", ".profile", ".zshrc", ".mcp.json", "pre-commit"} {
			for _, depth := range []string{"", "/*", "/*/*", "/*/*/*", "/.git"} {
				found, err := filepath.Glob(filepath.Join(base, "write", "*"+depth, name))
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range found {
					if filepath.Base(filepath.Dir(filepath.Dir(at))) != "new" && filepath.Base(filepath.Dir(at)) != "new" {
						t.Errorf("ESCAPE: %s is there", at)
					}
				}
			}
		}
	})
}
