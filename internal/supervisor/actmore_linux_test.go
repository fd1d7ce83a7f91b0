package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

func actMore(a []string) error {
	switch a[0] {
	case "flip":
		return flipPath()
	case "attributes":
		return attributes()
	case "swap":
		return swapDirectory()
	case "swapterminal":
		return swapTerminal(a[1], unix.O_WRONLY|unix.O_APPEND)
	case "swapterminalread":
		return swapTerminal(a[1], unix.O_RDONLY)
	case "swapcwd":
		return swapCwd(a[1], a[2])
	case "memory":
		return badMemory()
	case "affinities":
		return affinities()
	case "storm":
		return signalStorm()
	case "cwd":
		return threadCwd()
	case "time":
		return timeCalls(a[1], a[2])
	case "connects":
		return manyConnects(port(a[1]), port(a[2]))
	case "flipconnect":
		return flipConnect(port(a[1]), port(a[2]))
	case "flipdescriptor":
		return flipDescriptor(port(a[1]))
	case "owntable":
		return ownTable(port(a[1]))
	case "connectthird":
		return rawConnect(3, inet4(127, 0, 0, 1, port(a[1])), 16)
	case "ownsockets":
		return ownSockets(port(a[1]))
	case "options":
		return setEveryOption(port(a[1]))
	case "localsockets":
		return localSockets(a[1])
	case "localdial":
		return unix.Connect(local(unix.SOCK_STREAM), at(a[1]))
	case "hostsockets":
		return hostSockets(a[1])
	case "ownports":
		return ownPorts()
	case "portdial":
		fd, at := to(loop4, port(a[1]))
		return unix.Connect(fd, at)
	case "hostservers":
		return hostServers(port(a[1]), port(a[2]))
	case "takesover":
		return takesOver(port(a[1]))
	case "putindex":
		return putIndex()
	case "bendindex":
		return bendIndex(a[1])
	case "fullqueue":
		return fullQueue(port(a[1]))
	}
	return errors.New("no such act")
}

var tries = map[bool]int{true: 20000, false: 4000}[os.Getenv(kerneltest.AllEnv) == "all"]

// flipPath changes the path in memory while the kernel and the supervisor read it.
func flipPath() error {
	buf := []byte("safe01\x00")
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			copy(buf, ".envrc")
			copy(buf, "safe01")
		}
	}()
	for range tries {
		if fd, e := rawOpen(unsafe.Pointer(&buf[0]), unix.O_CREAT|unix.O_WRONLY); e == 0 {
			unix.Close(fd)
		}
	}
	stop.Store(true)
	if _, err := os.Lstat(".envrc"); err == nil {
		return errors.New("UNEXPECTED: .envrc was created")
	}
	return nil
}

// swapDirectory exchanges a directory and a link to a protected one while files are made in it.
func swapDirectory() error {
	os.Mkdir("plain", 0o755)
	if err := os.Symlink(".git/hooks", "link"); err != nil {
		return err
	}
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			unix.Renameat2(unix.AT_FDCWD, "plain", unix.AT_FDCWD, "link", unix.RENAME_EXCHANGE)
		}
	}()
	for range tries / 2 {
		if fd, err := unix.Open("plain/planted", unix.O_CREAT|unix.O_WRONLY, 0o755); err == nil {
			unix.Close(fd)
		}
	}
	stop.Store(true)
	if _, err := os.Lstat(".git/hooks/planted"); err == nil {
		return errors.New("UNEXPECTED: a hook was planted")
	}
	return nil
}

// badMemory passes paths that lie badly.
func badMemory() error {
	file, err := unix.MemfdCreate("pages", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if err := unix.Ftruncate(file, 2*4096); err != nil {
		return err
	}
	m, err := unix.Mmap(file, 0, 3*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED) // the last page is behind the file's end
	if err != nil {
		return err
	}
	if _, e := rawOpen(nil, unix.O_CREAT|unix.O_WRONLY); e != unix.EFAULT {
		return fmt.Errorf("null: %v", e)
	}
	for i := range m[:2*4096] {
		m[i] = 'a'
	}
	if _, e := rawOpen(unsafe.Pointer(&m[2*4096-8]), unix.O_CREAT|unix.O_WRONLY); e != unix.EFAULT {
		return fmt.Errorf("no end before memory that is not there: %v", e)
	}
	if _, e := rawOpen(unsafe.Pointer(&m[0]), unix.O_CREAT|unix.O_WRONLY); e != unix.ENAMETOOLONG {
		return fmt.Errorf("longer than PATH_MAX: %v", e)
	}
	copy(m[4096-3:], "ends-at-page\x00")
	copy(m[2*4096-5:], "last\x00")
	for _, at := range []int{4096 - 3, 2*4096 - 5} {
		if _, e := rawOpen(unsafe.Pointer(&m[at]), unix.O_CREAT|unix.O_WRONLY); e != 0 {
			return fmt.Errorf("across pages: %v", e)
		}
	}
	if err := os.Mkdir(strings.Repeat("n", 256), 0o755); !errors.Is(err, unix.ENAMETOOLONG) {
		return fmt.Errorf("long name: %v", err)
	}
	if err := os.Mkdir("", 0o755); !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("empty name: %v", err)
	}
	if err := unix.Mkdirat(999, "x", 0o755); err != unix.EBADF {
		return fmt.Errorf("closed descriptor: %v", err)
	}
	deep := strings.Repeat(strings.Repeat("d", 200)+"/", 20)
	return os.MkdirAll(deep[:len(deep)-1000], 0o755)
}

// signalStorm creates files in many threads while signals arrive.
func signalStorm() error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGURG, syscall.SIGUSR1)
	var stop atomic.Bool
	go func() {
		for !stop.Load() {
			syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			time.Sleep(50 * time.Microsecond)
		}
	}()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				d := fmt.Sprintf("s%d-%d", g, i)
				if err := os.Mkdir(d, 0o755); err != nil { // a restarted call would see EEXIST
					errs <- err
					return
				}
				if err := os.WriteFile(d+"/f", []byte("x"), 0o644); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// threadCwd gives one thread a working directory of its own and creates by a relative path there.
func threadCwd() error {
	os.Mkdir("own", 0o755)
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // as Docker's filter refuses it, there is none to be had
			done <- err
			return
		}
		unix.Chdir("own")
		unix.Umask(0o077)
		done <- os.WriteFile("here", nil, 0o666)
	}()
	if err := <-done; err == unix.EPERM {
		return nil
	} else if err != nil {
		return err
	}
	st, err := os.Stat("own/here")
	if err == nil && st.Mode().Perm() != 0o600 {
		err = fmt.Errorf("mode %v", st.Mode())
	}
	return err
}
