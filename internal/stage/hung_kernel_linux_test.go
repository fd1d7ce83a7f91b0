package stage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"golang.org/x/sys/unix"
)

// TestKernelTheKeeperKillsWhatHoldsUpAnEnd, as in a harness that is dead: nothing kills for the Control.
func TestKernelTheKeeperKillsWhatHoldsUpAnEnd(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, keeperKills)
	})
}

func keeperKills(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Plan{Steps: []plan.Step{{In: plan.Stage, Do: plan.OpenProc{}}, {In: plan.Tool, Do: plan.Chdir{}}, {In: plan.Tool, Do: plan.RestoreSignals{}}}}
	i := beginAt(t, exe, p, "hang").held()
	for !strings.HasSuffix(i.output(), "held\n") {
		time.Sleep(time.Millisecond)
	}
	if i.output() == "not held\n" {
		t.Skip("in this kernel splice(2) does not hold a pipe's lock while it waits")
	}
	i.cmd.Process.Kill()
	if said := i.end(); said != "held" || i.c.Stuck != 0 {
		t.Errorf("process %d does not end: %s", i.c.Stuck, said)
	}
}

func init() {
	moreTools["hang"] = func([]string) error { // a thread sleeps uninterruptibly, for the lock of a pipe, until a child ends
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		c := exec.Command("/proc/self/exe", "splice")
		c.Stdout, c.ExtraFiles = os.Stdout, []*os.File{os.NewFile(uintptr(s[0]), ""), w}
		if err := c.Start(); err != nil {
			return err
		}
		for !splices(c.Process.Pid) {
			time.Sleep(time.Millisecond)
		}
		thread := make(chan int)
		go func() {
			runtime.LockOSThread()
			thread <- unix.Gettid()
			unix.Read(int(r.Fd()), make([]byte, 1))
		}()
		for dir := fmt.Sprintf("/proc/self/task/%d", <-thread); ; time.Sleep(time.Millisecond) {
			switch sleepsIn(dir, unix.SYS_READ) {
			case 'D':
				fmt.Println("held")
				select {}
			case 'S':
				fmt.Println("not held")
				select {}
			}
		}
	}
	moreTools["splice"] = func([]string) error {
		time.AfterFunc(time.Minute, func() { fmt.Println("it was not killed"); os.Exit(0) })
		_, err := unix.Splice(3, nil, 4, nil, 1, 0)
		fmt.Println(err)
		return err
	}
}

// splices reports whether a thread of a process sleeps in splice(2).
func splices(pid int) bool {
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, dir := range list {
		if sleepsIn(dir, unix.SYS_SPLICE) == 'S' {
			return true
		}
	}
	return false
}

// sleepsIn returns the state of a thread that is in a system call (proc_pid_stat(5)); 0: it is in another or in none.
func sleepsIn(dir string, nr int) byte {
	if now, _ := os.ReadFile(dir + "/syscall"); !strings.HasPrefix(string(now), fmt.Sprint(nr, " ")) {
		return 0
	}
	text, _ := os.ReadFile(dir + "/stat") // it was in the call before it slept
	_, state, _ := strings.Cut(string(text), ") ")
	return (state + " ")[0]
}
