package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/rlimit"
	"golang.org/x/sys/unix"
)

// misuses are tools that try to break init, the stage or the harness. After
// each the harness must have the tool's own status and an empty sandbox.
var misuses = map[string]func(){
	"kill everybody": func() {
		if os.Getppid() == 1 { // never in the machine's own pid namespace
			unix.Kill(-1, unix.SIGKILL)
		}
	},
	"kill and stop init": func() {
		for sig := unix.Signal(1); sig <= 64; sig++ {
			unix.Kill(os.Getppid(), sig)
		}
		unix.Kill(os.Getppid(), unix.SIGKILL)
	},
	"take init's descriptors away": func() {
		for _, r := range []int{unix.RLIMIT_NOFILE, unix.RLIMIT_FSIZE, unix.RLIMIT_DATA, unix.RLIMIT_STACK, unix.RLIMIT_AS, unix.RLIMIT_NPROC} {
			unix.Prlimit(os.Getppid(), r, &unix.Rlimit{Cur: 1, Max: 1}, nil)
		}
	},
	"close all descriptors": func() { unix.CloseRange(0, 1<<31, 0) },
	"leave a daemon": func() {
		c := exec.Command("/bin/sh", "-c", "(setsid sleep 1000 &) &")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		c.Run()
	},
	"make a child of init": func() {
		const cloneParent = 0x8000
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, cloneParent|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 9, 0, 0) // must not be taken for the tool's end
		}
	},
	"have init trace": func() {
		go func() { rawCall(unix.SYS_PTRACE, 0, 0, 0, 0) }() // PTRACE_TRACEME
	},
	"fork until it is refused": func() {
		var started []*exec.Cmd
		for range 500 {
			c := exec.Command("/bin/sleep", "1000")
			if c.Start() != nil {
				break
			}
			started = append(started, c)
		}
		if len(started) >= 500 {
			fmt.Println("ESCAPE: 500 processes with a limit of 350")
		}
	},
	"become the stage": func() {
		os.Setenv("HOLDFAST_PROGRAM_FD", "3")
		unix.Dup2(0, 3)
		c := exec.Command("/proc/self/./exe")
		out, err := c.CombinedOutput()
		fmt.Printf("%v %s\n", err, out)
	},
	"be a subreaper with a signal on its parent's death": func() {
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGUSR1), 0, 0, 0)
		exec.Command("/bin/sh", "-c", "sleep 1000 &").Run()
	},
	"never read": func() {},
}

var _ = offer(programs, "misuse", func(args []string) {
	misuses[args[0]]()
	os.Exit(7)
})

func TestKernelAttackMisuse(t *testing.T) {
	kerneltest.Long(t)
	for name := range misuses {
		t.Run(name, func(t *testing.T) {
			eachWall(t, []walls{allSets[0], allSets[1], allSets[3]}, func(t *testing.T, w walls) {
				if w.name == noNamespaces && name == "kill everybody" {
					return // Landlock alone would stand between the test and the machine
				}
				p := attackPolicy(t, "", w)
				if name == "fork until it is refused" {
					limit := uint64(350) // the kernel bounds the ids of a pid namespace by 301 at the least
					if w.name == noNamespaces && os.Getuid() == 0 {
						return // root's processes are not counted outside of a user namespace
					}
					if w.name == noNamespaces {
						limit += host.Threads(os.Getuid())
					}
					p.Limits.Rlimits.NProc = rlimit.At(limit)
				}
				r, out, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				c := hostile(t, attackSandbox(t, p, w), "misuse", name)
				c.Stdout, c.Stderr = out, out
				c.Stdin = io.LimitReader(neverEnding{}, 1<<20)
				err = c.Run()
				out.Close()
				said, readErr := io.ReadAll(r) // ends when nobody inside holds it any more
				if c.ProcessState == nil || c.ProcessState.ExitCode() != 7 || readErr != nil {
					t.Errorf("the tool ended with %v, %v: %s", err, readErr, said)
				}
				if strings.Contains(string(said), "ESCAPE") {
					t.Errorf("%s", said)
				}
			})
		})
	}
}

// neverEnding is more input than a pipe holds.
type neverEnding struct{}

func (neverEnding) Read(b []byte) (int, error) {
	return copy(b, bytes.Repeat([]byte("x"), len(b))), nil
}

// What a Private directory holds is bounded, as is what a sandbox leaves: nothing.
func TestKernelAttackFillingPrivateDirectories(t *testing.T) {
	eachWall(t, allSets[:2], func(t *testing.T, w walls) {
		p := attackPolicy(t, "", w)
		p.Files.PrivateBytes = 1 << 20
		for _, dir := range []string{"/tmp", "/dev/shm", "/dev"} {
			for _, fill := range []string{"fill", "fill with empty files"} {
				out, err := say(t, attackSandbox(t, p, w), fill, dir)
				if err != nil || !strings.Contains(out, "bounded") {
					t.Errorf("ESCAPE: %s holds more than it should: %s: %v", dir, fill, err)
				}
			}
		}
	})
}

var _ = offer(programs, "fill with empty files", func(args []string) {
	for i := range 4096 { // about a KiB of the kernel's memory each
		f, err := os.Create(fmt.Sprint(args[0], "/", i))
		if err != nil {
			fmt.Println("bounded:", err)
			return
		}
		f.Close()
	}
})

var _ = offer(programs, "fill", func(args []string) {
	f, err := os.Create(args[0] + "/big")
	if err != nil {
		fmt.Println("bounded: it cannot be written at all")
		return
	}
	block := make([]byte, 1<<16)
	for range 64 { // 4 MiB
		if _, err := f.Write(block); err != nil {
			fmt.Println("bounded:", err)
			return
		}
	}
})
