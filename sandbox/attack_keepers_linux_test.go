package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

var _, _ = offer(attacks, "keepers", keeperActs), offer(programs, "keeper killer", killKeepers)

// unscoped are hosts without namespaces whose Landlock has no scope for signals.
var unscoped = []walls{
	{name: noNamespaces, without: []kerneltest.Feature{kerneltest.Namespaces}, may: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}, abi: 5},
	{name: "without namespaces, Landlock ABI 1", without: []kerneltest.Feature{kerneltest.Namespaces}, may: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}, abi: 1},
	{name: "without namespaces and profile", without: []kerneltest.Feature{kerneltest.Namespaces}, may: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}, abi: 5, noCalls: true},
}

// keepersOf returns the numbers of init, the keeper and the stage, as the tool finds them.
func keepersOf() (pids []int) {
	pid := os.Getpid()
	for range 3 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if pid, err = strconv.Atoi(strings.Fields(rest)[1]); err != nil {
			return nil
		}
		pids = append(pids, pid)
	}
	return pids
}

// onKeepers returns an act on each of them, which got what it wanted if one did.
func onKeepers(do func(pid int) error) func(ground) error {
	return func(ground) (err error) {
		pids := keepersOf()
		if len(pids) != 3 {
			return errors.New("they were not found")
		}
		for _, pid := range pids {
			if err = do(pid); err == nil {
				return nil
			}
		}
		return shortError(err)
	}
}

// queued is a siginfo_t that rt_sigqueueinfo takes.
func queued() *[128]byte {
	info := new([128]byte)
	*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
	return info
}

const high = 1 << 32 // the kernel looks at 32 bits of a number

// signalBy returns the ways to signal one process.
func signalBy(sig uintptr) map[string]func(pid int) error {
	one := func(pid int) uintptr { return uintptr(pid) }
	return map[string]func(pid int) error{
		"kill":                       func(pid int) error { return rawCall(unix.SYS_KILL, one(pid), sig) },
		"kill, with bits above":      func(pid int) error { return rawCall(unix.SYS_KILL, one(pid)|high, sig) },
		"kill of its group":          func(pid int) error { return rawCall(unix.SYS_KILL, -one(pid), sig) },
		"kill of its group, 32 bits": func(pid int) error { return rawCall(unix.SYS_KILL, uintptr(uint32(-pid)), sig) },
		"tkill":                      func(pid int) error { return rawCall(unix.SYS_TKILL, one(pid), sig) },
		"tgkill":                     func(pid int) error { return rawCall(unix.SYS_TGKILL, one(pid), one(pid), sig) },
		"tgkill with group -1":       func(pid int) error { return rawCall(unix.SYS_TGKILL, ^uintptr(0), one(pid), sig) },
		"rt_sigqueueinfo": func(pid int) error {
			return rawCall(unix.SYS_RT_SIGQUEUEINFO, one(pid), sig, uintptr(unsafe.Pointer(queued())))
		},
		"rt_tgsigqueueinfo": func(pid int) error {
			return rawCall(unix.SYS_RT_TGSIGQUEUEINFO, one(pid), one(pid), sig, uintptr(unsafe.Pointer(queued())))
		},
		"pidfd_send_signal": func(pid int) error { return sendByPidfd(sig)(unix.PidfdOpen(pid, 0)) },
		"pidfd_send_signal to /proc": func(pid int) error {
			return sendByPidfd(sig)(unix.Open(fmt.Sprintf("/proc/%d", pid), unix.O_DIRECTORY, 0))
		},
		"pidfd_send_signal to a task": func(pid int) error {
			return sendByPidfd(sig)(unix.Open(fmt.Sprintf("/proc/%d/task/%d", pid, pid), unix.O_DIRECTORY, 0))
		},
	}
}

func sendByPidfd(sig uintptr) func(fd int, err error) error {
	return func(fd int, err error) error {
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return rawCall(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(fd), sig, 0, 0)
	}
}

// inputSignal has a socket's owner get sig when there is input, by one of two owners.
func inputSignal(sig int, extended bool) func(pid int) error {
	return func(pid int) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		own := func() error { return rawCall(unix.SYS_FCNTL, uintptr(fds[0]), unix.F_SETOWN, uintptr(pid)) }
		if extended {
			owner := [2]int32{1, int32(pid)} // struct f_owner_ex: F_OWNER_PID
			own = func() error {
				return rawCall(unix.SYS_FCNTL, uintptr(fds[0]), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner)))
			}
		}
		if err := own(); err != nil {
			return err
		}
		if err := rawCall(unix.SYS_FCNTL, uintptr(fds[0]), unix.F_SETSIG|high, uintptr(sig)); err != nil {
			return err
		}
		if err := rawCall(unix.SYS_FCNTL, uintptr(fds[0]), unix.F_SETFL, unix.O_ASYNC); err != nil {
			return err
		}
		_, err = unix.Write(fds[1], []byte("x"))
		return err
	}
}

const onTheTest = "outside of a sandbox it would change the processes of the test"

// keeperActs try to signal what ends the run. The signal is none, or one that changes
// nothing: an act that succeeds must not end the test.
var keeperActs = func() []act {
	acts := []act{
		{name: "kill of all", tame: true, try: func(ground) error { return rawCall(unix.SYS_KILL, ^uintptr(0), 0) }},
		{name: "kill of all, 32 bits", tame: true, try: func(ground) error { return rawCall(unix.SYS_KILL, high-1, 0) }},
		{name: "kill of the first group", tame: true, try: func(ground) error { return rawCall(unix.SYS_KILL, uintptr(-unix.Getpgrp()), 0) }},
		{name: "kill of one's group", tame: true, try: func(ground) error { return rawCall(unix.SYS_KILL, 0, 0) }},
		{name: "make SIGKILL the signal for input", never: onTheTest, try: onKeepers(inputSignal(int(unix.SIGKILL), false))},
		{name: "make SIGSTOP the signal for input", never: onTheTest, try: onKeepers(inputSignal(int(unix.SIGSTOP), true))},
		{name: "trace", never: onTheTest, try: onKeepers(seize)},
		{name: "attach", never: onTheTest, try: onKeepers(func(pid int) error { return rawCall(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(pid), 0, 0) })},
		{name: "limit", never: onTheTest, try: onKeepers(func(pid int) error {
			return unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1000, Max: 1000}, nil)
		})},
		{name: "pin to a processor", never: onTheTest, try: onKeepers(func(pid int) error { var s unix.CPUSet; s.Set(0); return unix.SchedSetaffinity(pid, &s) })},
		{name: "slow down", never: onTheTest, try: onKeepers(func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) })},
		{name: "slow down its group", never: onTheTest, try: func(ground) error { return unix.Setpriority(unix.PRIO_PGRP, 0, 19) }},
		{name: "take a descriptor", never: onTheTest, try: onKeepers(takeDescriptor)},
		{name: "advise on memory", never: onTheTest, try: onKeepers(func(pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			return rawCall(unix.SYS_PROCESS_MADVISE, uintptr(fd), 0, 0, unix.MADV_COLD, 0)
		})},
		{name: "open its memory", never: onTheTest, try: onKeepers(func(pid int) error { return open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR) })},
		{name: "choose it for want of memory", never: onTheTest, try: onKeepers(func(pid int) error { return open(fmt.Sprintf("/proc/%d/oom_score_adj", pid), unix.O_WRONLY) })},
		{name: "kill a child", works: true, try: withChild(func(pid int) error { return unix.Kill(pid, unix.SIGCONT) })},
		{name: "end a child as package os does", works: true, try: func(ground) error {
			c := exec.Command("/bin/cat")
			in, err := c.StdinPipe()
			if err != nil {
				return err
			}
			defer in.Close()
			if err = c.Start(); err == nil {
				err = c.Process.Kill()
			}
			c.Wait()
			return err
		}},
		{name: "end a child's group", works: true, try: func(ground) error {
			c := exec.Command("/bin/sh", "-c", "cat; true")
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			in, err := c.StdinPipe()
			if err != nil {
				return err
			}
			defer in.Close()
			if err = c.Start(); err == nil {
				err = unix.Kill(-c.Process.Pid, unix.SIGKILL)
			}
			c.Wait()
			return err
		}},
		{name: "be told of input", tame: true, try: func(ground) error { return inputSignal(int(unix.SIGURG), true)(os.Getpid()) }},
	}
	for _, name := range slices.Sorted(maps.Keys(signalBy(0))) {
		for _, sig := range []unix.Signal{0, unix.SIGCONT} {
			a := act{name: fmt.Sprintf("%s: %d", name, sig), tame: true, try: onKeepers(signalBy(uintptr(sig))[name])}
			if strings.HasPrefix(name, "kill of its group") || name == "tgkill with group -1" || name == "pidfd_send_signal to a task" {
				a.tame, a.never = false, "the kernel refuses it outside, too: no such group, and a task's directory is not a pidfd"
			}
			acts = append(acts, a)
		}
	}
	return acts
}()

// Below Landlock's ABI 6 and without namespaces a filter keeps the tool from signalling
// the processes that end its run.
func TestKernelAttackKeepers(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, unscoped, func(t *testing.T, w walls) {
		attackPlainly(t, "keepers")
		attackWith(t, "keepers", w, nil)
	})
}

// killKeepers stops and kills the sandbox's own processes by every way, from a process in
// a session of its own, whose arguments are their numbers.
func killKeepers(args []string) {
	if len(args) == 0 {
		pids := keepersOf()
		c := exec.Command("/proc/self/exe")
		c.Args = []string{attackTool, "keeper killer", fmt.Sprint(pids[0]), fmt.Sprint(pids[1]), fmt.Sprint(pids[2])}
		c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
		if err := c.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	var pids [3]int
	for i := range pids {
		pids[i], _ = strconv.Atoi(args[i])
	}
	os.Stdout.WriteString("started\n")
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, name := range slices.Sorted(maps.Keys(signalBy(0))) {
			for _, pid := range pids {
				signalBy(uintptr(sig))[name](pid)
			}
		}
		for _, pid := range pids {
			inputSignal(int(sig), false)(pid)
		}
	}
	time.Sleep(time.Minute)
}

func TestKernelKeepersEndWhatAttacksThem(t *testing.T) {
	kerneltest.Parallel(t) // it waits for its deadline
	kerneltest.Long(t)
	eachWall(t, unscoped, func(t *testing.T, w walls) {
		p := attackPolicy(t, "", w)
		p.Limits.WallClock = 2 * time.Second
		c := hostile(t, attackSandbox(t, p, w), "keeper killer")
		var complained bytes.Buffer
		c.Stderr = &complained
		if err := whileItSleeps(t, c, nil); !errors.Is(err, ErrDeadline) {
			t.Errorf("the deadline was not held: %v\n%s", err, complained.Bytes())
		}
		r := c.Report()
		if line := r.Bound(policy.BoundTime); line.State != Held {
			t.Errorf("time: %s", line.State)
		}
		if strings.Contains(fmt.Sprint(r), "outlive") {
			t.Errorf("said to be lost:\n%s", r)
		}
	})
}

// Where the filter does not hold the keepers, a deadline is refused unless May names it.
func TestKeepersAreHeldOrTheDeadlineIsLost(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*compile.Input)
		want   string
	}{
		{"by Landlock's scope", func(in *compile.Input) { in.Facts.Landlock.Value = 6 }, ""},
		{"by the filter", func(in *compile.Input) { in.Facts.Landlock.Value = 5 }, ""},
		{"without Landlock", func(in *compile.Input) { fixture.WithoutLandlock(&in.Facts) }, "time"},
		{"in a stage with threads", func(in *compile.Input) { in.Facts.Landlock.Value, in.Threads = 5, true }, "time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := fixture.Host()
			fixture.WithoutNamespaces(&facts)
			in := planInput(fixture.WorkspaceTree(), facts, Policy{May: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}, Limits: Limits{WallClock: time.Second}})
			tt.change(&in)
			_, err := compile.Plan(in)
			if got := fixture.UnsupportedBounds(t, err); got != tt.want {
				t.Errorf("refused %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

// Each process stands in the filter, on both architectures, and nothing else is refused.
func TestKeeperFilter(t *testing.T) {
	for _, arch := range []seccomp.Arch{seccomp.AMD64, seccomp.ARM64} {
		program, err := compile.KeeperFilter().Compile(arch)
		if err != nil {
			t.Fatal(err)
		}
		judge := func(name string, args ...uint64) seccomp.Action {
			call, err := seccomp.NewCall(arch, name, args...)
			if err != nil {
				t.Fatal(err)
			}
			action, err := program.Evaluate(call)
			if err != nil {
				t.Fatal(err)
			}
			return action
		}
		for p := range plan.NumberOwn {
			if judge("kill", p.Placeholder(), 9) != seccomp.Errno(uint16(unix.EPERM)) || judge("kill", p.Placeholder()|high, 0) != seccomp.Errno(uint16(unix.EPERM)) {
				t.Errorf("%v: process %d can be killed", arch, p)
			}
		}
		for _, a := range []seccomp.Action{judge("kill", 1234, 9), judge("tgkill", 1234, 1235, 9), judge("fcntl", 3, 10, 10), judge("fcntl", 3, 1030, 9), judge("getpid")} {
			if a != seccomp.Allow {
				t.Errorf("%v: an ordinary call is answered by %v", arch, a)
			}
		}
	}
}
