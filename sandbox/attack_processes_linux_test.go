package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _ = offer(attacks, "processes", processActs)

// onHarness returns an act on the harness's process.
func onHarness(do func(pid int) error) func(ground) error {
	return func(f ground) error { return shortError(do(f.harness)) }
}

// onParent returns an act on the tool's parent, which is init.
func onParent(do func(pid int) error) func(ground) error {
	return func(ground) error { return shortError(do(os.Getppid())) }
}

// processActs reach for other processes. No act signals by a number that could
// be somebody else's outside: a wall that is missing must not cost the machine.
var processActs = []act{
	{name: "signal a child of one's own", works: true, tame: true, try: withChild(func(pid int) error { return unix.Kill(pid, unix.SIGCONT) })},
	{name: "read a child's memory map", works: true, tame: true, try: withChild(func(pid int) error { return open(fmt.Sprintf("/proc/%d/maps", pid), unix.O_RDONLY) })},
	{name: "signal the harness", tame: true, try: onHarness(func(pid int) error { return unix.Kill(pid, 0) })},
	{name: "signal the harness's threads", tame: true, try: onHarness(func(pid int) error { return unix.Tgkill(pid, pid, 0) })},
	{name: "queue a signal to the harness", tame: true, try: onHarness(func(pid int) error {
		info := [128]byte{}
		*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
		return rawCall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGCONT), uintptr(unsafe.Pointer(&info)))
	})},
	{name: "signal the harness by pidfd", tame: true, try: onHarness(func(pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return fmt.Errorf("pidfd_open: %w", err)
		}
		return unix.PidfdSendSignal(fd, 0, nil, 0)
	})},
	{name: "take a descriptor of the harness", tame: true, try: onHarness(takeDescriptor)},
	{name: "take a descriptor of init", tame: true, try: onParent(takeDescriptor)},
	{name: "see the harness", tame: true, unheld: []string{noNamespaces, noOwnProc}, try: onHarness(func(pid int) error { return open(fmt.Sprintf("/proc/%d/stat", pid), unix.O_RDONLY) })},
	{name: "read the harness's environment", tame: true, try: onHarness(func(pid int) error { return readSome(fmt.Sprintf("/proc/%d/environ", pid)) })},
	{name: "read init's environment", tame: true, try: onParent(func(pid int) error { return readSome(fmt.Sprintf("/proc/%d/environ", pid)) })},
	{name: "open the harness's memory", tame: true, try: onHarness(func(pid int) error { return open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR) })},
	{name: "open init's memory", tame: true, try: onParent(func(pid int) error { return open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR) })},
	{name: "read init's memory map", tame: true, try: onParent(func(pid int) error { return readSome(fmt.Sprintf("/proc/%d/maps", pid)) })},
	{name: "see what init's descriptors are", tame: true, try: onParent(func(pid int) error {
		for fd := range 64 { // for the files' owner the list of numbers is readable
			if _, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); err == nil {
				return nil
			}
		}
		return errors.New("no link can be read")
	})},
	{name: "see init's namespaces", tame: true, try: onParent(func(pid int) error { _, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); return err })},
	{name: "see init's program", tame: true, try: onParent(func(pid int) error { _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); return err })},
	{name: "read init's memory by process_vm_readv", tame: true, try: onParent(readMemory)},
	{name: "read the harness's memory by process_vm_readv", tame: true, try: onHarness(readMemory)},
	{name: "seize init", tame: true, try: onParent(seize)},
	{name: "seize the harness", tame: true, try: onHarness(seize)},
	{name: "signal init", tame: true, unheld: []string{noLandlock}, try: onParent(func(pid int) error { return unix.Kill(pid, 0) })},
	{name: "compare with the harness", tame: true, try: onHarness(func(pid int) error { return rawCall(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), 1, 0, 0) })},
	{name: "limit the harness", tame: true, try: onHarness(func(pid int) error {
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	})},
	{name: "limit init", tame: true, try: onParent(func(pid int) error {
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	})},
	{name: "limit init, with a bit above its number", tame: true, try: onParent(func(pid int) error {
		return rawCall(unix.SYS_PRLIMIT64, uintptr(pid)|1<<32, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(new(unix.Rlimit))), 0)
	})},
	{name: "limit a child", works: true, tame: true, unheld: []string{noNamespaces, noOwnProc}, try: withChild(func(pid int) error {
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	})},
	{name: "slow init down", tame: true, try: onParent(func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) })},
	{name: "make init idle", tame: true, try: onParent(func(pid int) error {
		param := int32(0)
		return rawCall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), 0, uintptr(unsafe.Pointer(&param)))
	})},
	{name: "bind the harness to a processor", tame: true, try: onHarness(func(pid int) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid, &set)
	})},
	{name: "slow the harness down", tame: true, try: onHarness(func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) })},
	{name: "slow the harness's disk down", tame: true, try: onHarness(func(pid int) error { return rawCall(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 3<<13) })},
	{name: "make the harness idle", tame: true, try: onHarness(func(pid int) error {
		param := int32(0)
		return rawCall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), 0, uintptr(unsafe.Pointer(&param)))
	})},
	{name: "offer the harness to the killer of those out of memory", tame: true, try: onHarness(func(pid int) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	})},
	{name: "rename init", never: "a process alone can rename itself (proc_pid_comm(5))", try: onParent(func(pid int) error { return os.WriteFile(fmt.Sprintf("/proc/%d/comm", pid), []byte("x"), 0) })},
	{name: "attach the harness's shared memory", tame: true, try: func(ground) error {
		_, err := unix.SysvShmGet(sharedKey, 0, 0)
		return err
	}},
}

// sharedKey names the shared memory segment that the test makes.
const sharedKey = 0x686f6c64

func withChild(do func(pid int) error) func(ground) error {
	return func(ground) error {
		c := exec.Command("/bin/cat")
		in, err := c.StdinPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		err = do(c.Process.Pid)
		in.Close()
		return errors.Join(shortError(err), c.Wait())
	}
}

func takeDescriptor(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	_, err = unix.PidfdGetfd(fd, 0, 0)
	return err
}

func readSome(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := f.Read(make([]byte, 64))
	if n > 0 {
		return nil
	}
	return err
}

func readMemory(pid int) error {
	buf := make([]byte, 16)
	local := []unix.Iovec{{Base: &buf[0], Len: 16}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&os.Args)), Len: 16}} // the same program: the address is mapped there
	_, err := unix.ProcessVMReadv(pid, local, remote, 0)
	return err
}

func seize(pid int) error {
	const ptraceSeize = 0x4206
	return inAChild(unix.SYS_PTRACE, ptraceSeize, uintptr(pid)) // whose end lets go again
}

func TestKernelAttackProcesses(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		id, err := unix.SysvShmGet(sharedKey, 4096, unix.IPC_CREAT|0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		attackPlainly(t, "processes")
		attackWith(t, "processes", w, nil)
	})
}

// A tool that shares the harness's process group, as one of os/exec's does,
// reaches the group by the number 0, whatever pid namespace it is in.
var _, _, _ = offer(programs, "kill the group", func([]string) { unix.Kill(0, unix.SIGKILL) }),
	offer(programs, "slow the group", func([]string) {
		unix.Setpriority(unix.PRIO_PGRP, 0, 19)
		rawCall(unix.SYS_IOPRIO_SET, 2, 0, 3<<13)
	}), offer(programs, "harness", sufferingHarness)

// sufferingHarness is not hostile: it is a harness that runs a hostile tool, for
// tests that expect the harness to suffer. Its arguments are the walls and the
// tool's. It says what became of it on standard output.
func sufferingHarness(args []string) {
	w := walls{}
	for _, s := range allSets {
		if s.name == args[0] {
			w = s
		}
	}
	t := new(testing.T)
	run := hostileBare(t, args[1:]...).Run
	if args[0] != noWalls {
		s, err := New(attackPolicy(t, "", w))
		if err != nil {
			fmt.Println(err)
			return
		}
		c := hostile(t, s, args[1:]...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		run = c.Run
	}
	err := run()
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	io, _, _ := unix.RawSyscall(unix.SYS_IOPRIO_GET, 1, 0, 0)
	fmt.Printf("harness alive, nice %d, class %d, tool: %v\n", 20-nice, io>>13, err)
}

const noWalls = "without walls"

func runHarness(t *testing.T, args ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Args = append([]string{attackTool, "harness"}, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := c.CombinedOutput()
	t.Logf("%v %s", err, out)
	return string(out)
}

func TestKernelAttackOnTheProcessGroup(t *testing.T) {
	kerneltest.Long(t)
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // of the harness: 0, unless the test itself was started with nice(1)
	if err != nil {
		t.Fatal(err)
	}
	io, _, _ := unix.RawSyscall(unix.SYS_IOPRIO_GET, 1, 0, 0) // 0, unless it was started with ionice(1)
	unchanged := fmt.Sprintf("nice %d, class %d", 20-nice, io>>13)
	if unchanged == "nice 19, class 3" {
		t.Skip("this process has the lowest priority already: start it without nice(1) and ionice(1)")
	}
	if out := runHarness(t, noWalls, "kill the group"); strings.Contains(out, "harness alive") {
		t.Error("without walls the tool does not kill the harness either")
	}
	if out := runHarness(t, noWalls, "slow the group"); strings.Contains(out, unchanged) {
		t.Errorf("without walls the tool does not slow the harness either: %s", out)
	}
	eachWall(t, allSets, func(t *testing.T, w walls) {
		if out := runHarness(t, w.name, "kill the group"); !strings.Contains(out, "harness alive") {
			t.Error("ESCAPE: the tool killed the harness")
		}
		if out := runHarness(t, w.name, "slow the group"); !strings.Contains(out, unchanged) {
			t.Errorf("ESCAPE: the tool slowed the harness: %s", out)
		}
	})
}
