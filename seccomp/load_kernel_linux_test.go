package seccomp

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// nativeArch skips on a machine that filters are not compiled for.
func nativeArch(t *testing.T) Arch {
	t.Helper()
	a, err := Native()
	if err != nil {
		t.Skip(err)
	}
	return a
}

// loadHere loads f for the whole process, which must be a child.
func loadHere(t *testing.T, f Filter) {
	t.Helper()
	if _, err := mustCompile(t, f, nativeArch(t)).Load(LoadOptions{}); err != nil {
		t.Fatal(err)
	}
}

// invoke makes a call by name and returns its errno.
func invoke(t *testing.T, name string, args ...uint64) unix.Errno {
	t.Helper()
	c := mustCall(t, nativeArch(t), name, args...)
	return invokeNumber(c.Nr, c.Args)
}

func invokeNumber(nr uint32, a [6]uint64) unix.Errno {
	_, _, errno := unix.Syscall6(uintptr(nr), uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), uintptr(a[5]))
	return errno
}

// status returns a field of a thread's status in /proc.
func status(t *testing.T, thread, field string) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/task/" + thread + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n"+field+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

func threads(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

func TestKernelLoadingHoldsForEveryThread(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			stop := make(chan struct{})
			defer close(stop)
			for range 4 {
				started := make(chan struct{})
				go func() { runtime.LockOSThread(); close(started); <-stop }()
				<-started
			}
			before := threads(t)
			loadHere(t, Default())
			if len(before) < 5 {
				t.Fatalf("only %d threads", len(before))
			}
			for _, id := range threads(t) {
				if mode, nnp := status(t, id, "Seccomp"), status(t, id, "NoNewPrivs"); mode != "2" || nnp != "1" {
					t.Errorf("thread %s: Seccomp %s, NoNewPrivs %s", id, mode, nnp)
				}
			}
		})
	})
}

func TestKernelLoadingForOneThreadLeavesTheOthersAlone(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		f := Off().With(refuse(EACCES, "for the test", "setdomainname"))
		errs := make(chan [2]unix.Errno)
		go func() {
			before := invoke(t, "setdomainname", 0, 100)
			if _, err := mustCompile(t, f, nativeArch(t)).Load(LoadOptions{ThreadOnly: true}); err != nil {
				t.Error(err)
			}
			errs <- [2]unix.Errno{before, invoke(t, "setdomainname", 0, 100)}
		}()
		if got := <-errs; got[0] == unix.EACCES || got[1] != unix.EACCES {
			t.Errorf("the thread: %v", got)
		}
		if got := invoke(t, "setdomainname", 0, 100); got == unix.EACCES {
			t.Error("another thread is filtered as well")
		}
	})
}

// With TSYNC alone seccomp(2) reports the thread that cannot follow as a positive result, not
// as an errno. go-seccomp-bpf v1.6.0 takes it for success, with nothing loaded.
func TestKernelAThreadThatCannotFollowIsAnErrorThatNamesIt(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			p := mustCompile(t, Off().With(refuse(EACCES, "for the test", "setdomainname")), nativeArch(t))
			other, stop := make(chan int), make(chan struct{})
			defer close(stop)
			go func() {
				if _, err := p.Load(LoadOptions{ThreadOnly: true}); err != nil {
					t.Error(err)
				}
				other <- unix.Gettid()
				<-stop
			}()
			id := <-other
			me := strconv.Itoa(unix.Gettid())
			before := status(t, me, "Seccomp_filters")
			_, err := p.Load(LoadOptions{})
			var e *LoadError
			if !errors.As(err, &e) || e.Thread != id || e.Step != "synchronize threads" || !errors.Is(err, unix.ESRCH) {
				t.Errorf("%v, want thread %d", err, id)
			}
			if after := status(t, me, "Seccomp_filters"); after != before {
				t.Errorf("%s filters, before %s", after, before)
			}
			fd, err := p.Load(LoadOptions{Listener: true})
			if !errors.Is(err, unix.ESRCH) || fd != -1 {
				t.Errorf("with a listener: %d, %v", fd, err)
			}
		})
	})
}

// go-seccomp-bpf v1.6.0 throws the listener's descriptor away.
func TestKernelAListenerIsReturnedAndDecidesCalls(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			p := mustCompile(t, Off().With(Rule{Names: []string{"getpgid"}, Action: Notify}), nativeArch(t))
			fd, err := p.Load(LoadOptions{Listener: true})
			if err != nil {
				t.Fatal(err)
			}
			if link, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(fd))); !strings.Contains(link, "seccomp notify") {
				t.Errorf("the descriptor is %s, %v", link, err)
			}
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("the descriptor is not close-on-exec: %#x, %v", flags, err)
			}
			result := make(chan unix.Errno)
			go func() { result <- invoke(t, "getpgid", 0, 77) }()
			var request struct { // struct seccomp_notif, linux/seccomp.h
				id         uint64
				pid, flags uint32
				nr, arch   uint32
				ip         uint64
				args       [6]uint64
			}
			response := struct { // struct seccomp_notif_resp
				id     uint64
				value  int64
				error  int32
				flags_ uint32
			}{error: -int32(unix.EXDEV)}
			const receive, send = 0xc0502100, 0xc0182101 // SECCOMP_IOCTL_NOTIF_RECV and _SEND
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), receive, uintptr(unsafe.Pointer(&request))); errno != 0 {
				t.Fatal(errno)
			}
			if request.args[1] != 77 {
				t.Errorf("the argument is %d", request.args[1])
			}
			response.id = request.id
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), send, uintptr(unsafe.Pointer(&response))); errno != 0 {
				t.Fatal(errno)
			}
			if got := <-result; got != unix.EXDEV {
				t.Errorf("the call failed with %v", got)
			}
		})
	})
}

func TestKernelWithoutSeccompLoadingIsAnErrorThatSaysSo(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		c := kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.SeccompFilter}}
		kerneltest.InChild(t, c, func(t *testing.T) {
			fd, err := mustCompile(t, Default(), nativeArch(t)).Load(LoadOptions{})
			if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, unix.ENOSYS) || fd != -1 {
				t.Errorf("%d, %v", fd, err)
			}
		})
	})
}

func TestKernelUnderDefaultNetworkingOfOrdinaryProgramsWorks(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			loadHere(t, Default())
			if _, err := net.Interfaces(); err != nil {
				t.Error(err)
			}
			for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
				l, err := net.Listen(network, address)
				if err != nil {
					t.Fatal(err)
				}
				c, err := net.Dial(network, l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				c.Close()
				l.Close()
			}
			c, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		})
	})
}

func TestKernelUnderEachProfileShellsAndPipesWork(t *testing.T) {
	for name, profile := range profiles {
		t.Run(name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
					loadHere(t, profile())
					out, err := exec.Command("sh", "-c", "ls / | sort -r | head -n 1 >/dev/null; (echo sub; kill -0 $$) & wait; cat <<E\nhere\nE\n").CombinedOutput()
					if err != nil || !slices.Equal(strings.Fields(string(out)), []string{"sub", "here"}) {
						t.Errorf("%v: %s", err, out)
					}
				})
			})
		})
	}
}
