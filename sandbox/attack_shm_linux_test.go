package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The tool that uses shared memory by names, as shm_open(3) and sem_open(3) do, and that looks for a file of the host's there.
var _ = offer(programs, "shared memory", func(args []string) {
	fail := func(what string, err error) { fmt.Println(what+":", err) }
	own := filepath.Dir(os.TempDir()) // the run's
	if _, err := os.Lstat(filepath.Join(own, "shm")); !os.IsNotExist(err) {
		fail("a directory for shared memory before there is any", err)
	}
	mask := unix.Umask(0o777)
	if err := unix.Unlink("/dev/shm/" + args[1]); err != unix.ENOENT {
		fail("removing what is not there", err)
	}
	unix.Umask(mask)
	if s, err := os.Stat(filepath.Join(own, "shm")); err != nil || s.Mode() != os.ModeDir|0o700 {
		fail("the directory for shared memory", fmt.Errorf("%v, %v", s, err))
	}
	if err := sharedMemoryWorks("/dev/shm/" + args[1]); err != nil {
		fail("shared memory", err)
	}
	name := "/dev/shm/" + args[0]
	if fd, err := unix.Open(name, unix.O_RDWR, 0); err != unix.ENOENT {
		fail("the host's file", fmt.Errorf("%d, %v", fd, err))
	}
	if err := unix.Unlink(name); err != unix.ENOENT {
		fail("removing the host's file", err)
	}
	cwd, _ := os.Getwd()
	shm, err := unix.Open("/dev/shm", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		fail("O_PATH", err)
	}
	for _, p := range []string{"/dev/../dev/shm/", "//dev/shm/", "/proc/self/root/dev/shm/", fmt.Sprintf("/proc/self/fd/%d/", shm), "/dev/shm/../../dev/shm/", "/dev/shm/../../../../dev/shm/"} {
		for _, flags := range []int{unix.O_RDONLY, unix.O_RDWR, unix.O_RDWR | unix.O_CREAT} {
			if fd, err := unix.Open(p+args[0], flags, 0o600); err == nil {
				unix.Write(fd, []byte("ESCAPE"))
				fail("ESCAPE", fmt.Errorf("%s%s was opened with flags %#x", p, args[0], flags))
			}
		}
		for what, err := range map[string]error{"remove": unix.Unlink(p + args[0]), "mode": unix.Chmod(p+args[0], 0o666), "directory": unix.Mkdir(p+args[1]+".d", 0o700)} {
			if err == nil {
				fail("ESCAPE", fmt.Errorf("%s by %s", what, p))
			}
		}
	}
	if fd, err := unix.Openat(shm, args[1], unix.O_RDWR|unix.O_CREAT, 0o600); err == nil {
		fail("ESCAPE", fmt.Errorf("made by the directory: %d", fd))
	}
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		fail("socket", err)
	}
	if unix.Bind(socket, &unix.SockaddrUnix{Name: "/dev/shm/" + args[1]}) == nil {
		fail("ESCAPE", errors.New("a socket is there"))
	}
	if err := os.WriteFile("/dev/shm/planted", []byte("text"), 0o600); err != nil {
		fail("plant", err)
	}
	if err := os.Rename("/dev/shm/planted", filepath.Join(cwd, ".bashrc")); err == nil {
		fail("ESCAPE", errors.New("a protected name by way of shared memory"))
	}
	if err := os.WriteFile(filepath.Join(os.TempDir(), "file"), nil, 0o600); err != nil {
		fail("temporary file", err)
	}
	for _, target := range []string{"/dev/shm", cwd} { // Landlock holds the first as well
		if err := errors.Join(os.RemoveAll(filepath.Join(own, "shm")), os.Symlink(target, filepath.Join(own, "shm"))); err != nil {
			fail("a link in the directory's place", err)
		}
		for _, p := range []string{name, name + ".new"} {
			if fd, err := unix.Open(p, unix.O_RDWR|unix.O_CREAT, 0o600); err == nil {
				fail("ESCAPE", fmt.Errorf("%s by a link to %s in the directory's place: %d", p, target, fd))
			}
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(own, "shm")), sharedMemoryWorks("/dev/shm/"+args[1])); err != nil {
		fail("shared memory after the directory was removed", err)
	}
})

// sharedMemoryWorks does what shm_open(3), sem_open(3) and their likes do.
func sharedMemoryWorks(name string) error {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 4096); err != nil {
		return err
	}
	if err := unix.Link(name, name+".2"); err != nil {
		return err
	}
	again, err := unix.Open(name+".2", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(again)
	var b [2][]byte
	for i, fd := range []int{fd, again} {
		if b[i], err = unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return err
		}
	}
	if b[0][7] = 42; b[1][7] != 42 {
		return errors.New("the memory is not shared")
	}
	return errors.Join(unix.Mkdir(name+".d", 0o700), os.WriteFile(name+".d/file", nil, 0o600), unix.Unlink(name+".d/file"), unix.Rmdir(name+".d"),
		unix.Rename(name+".2", name+".3"), unix.Unlink(name+".3"), unix.Unlink(name))
}

// TestKernelAttackTheHostsSharedMemory: without namespaces a tool has names below /dev/shm, and none of them is the host's, also where the run's own
// directory lies there.
func TestKernelAttackTheHostsSharedMemory(t *testing.T) {
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		host, err := os.CreateTemp("/dev/shm", "holdfast")
		if err != nil {
			t.Skipf("needs a /dev/shm that can be written: %v", err)
		}
		host.Close()
		defer os.Remove(host.Name())
		mine := filepath.Base(host.Name()) + "-mine"
		for _, tmp := range []string{os.TempDir(), "/dev/shm"} {
			p, dir := barePolicy(t, w)
			t.Setenv("TMPDIR", tmp) // where the run makes its own directory
			c := hostile(t, attackSandbox(t, p, w), "shared memory", filepath.Base(host.Name()), mine)
			c.Dir = dir
			if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("TMPDIR=%s: %v\n%s\n%s", tmp, err, out, c.Report())
			}
			if s, err := os.Stat(host.Name()); err != nil || s.Size() != 0 || s.Mode() != 0o600 {
				t.Errorf("the host's file: %+v, %v", s, err)
			}
			for _, made := range []string{mine + "*", filepath.Base(host.Name()) + ".new"} {
				if left, _ := filepath.Glob("/dev/shm/" + made); len(left) > 0 {
					t.Errorf("the tool has made %v on the host", left)
				}
			}
		}
	})
}
