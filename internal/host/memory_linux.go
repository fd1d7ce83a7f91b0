package host

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ptraceRemedy is what has a container engine's profile allow the calls that act on another process: Docker, containerd and Podman tie them to
// this capability (process_vm_readv: before Docker 23 and containerd 1.7; pidfd_getfd: to this day).
const ptraceRemedy = "a system call filter that allows it (Docker, Podman: --cap-add SYS_PTRACE; Kubernetes: capabilities: add: [SYS_PTRACE])"

// readMemory finds out how the supervisor can read the memory of a tool, a descendant of the same user. A filter shows in a try on this process
// itself; Yama (Documentation/admin-guide/LSM/Yama.rst) spares that, and says by its setting what it does with others: 0 and 1 let an ancestor
// read, 2 wants CAP_SYS_PTRACE, 3 refuses all.
func readMemory(shortage *error) (f Fact, byFile bool) {
	f = Fact{Name: memoryName, Answer: Yes, Reason: "process_vm_readv(2) works"}
	if err := readByCall(); err != nil {
		byFile, f.Reason = true, "by /proc/PID/mem: process_vm_readv(2): "+err.Error()
		if other := readByFile(); IsShortage(other) {
			*shortage = short(fmt.Errorf("/proc/PID/mem: %w", other))
		} else if other != nil {
			f.Answer, f.Reason, f.Remedy = No, fmt.Sprintf("process_vm_readv(2): %v; /proc/PID/mem: %v", err, other), ptraceRemedy
		}
	}
	return f.underYama(yamaScope(), effective()>>unix.CAP_SYS_PTRACE&1 != 0), byFile
}

// underYama is the fact where Yama has that setting; privileged: this process has CAP_SYS_PTRACE.
func (f Fact) underYama(scope string, privileged bool) Fact {
	if scope == "3" || scope == yamaAdmin && !privileged {
		f.Answer, f.Reason, f.Remedy = No, yamaReason+scope, "sysctl kernel.yama.ptrace_scope=1 (3 stays until the machine is restarted)"
	}
	return f
}

const yamaReason, yamaAdmin = "kernel.yama.ptrace_scope is ", "2"

// inNamespace is the fact where a sandbox has a user namespace of its own: its init has CAP_SYS_PTRACE in that.
func (f Fact) inNamespace() Fact {
	if f.Answer == No && f.Reason == yamaReason+yamaAdmin {
		f.Answer, f.Reason, f.Remedy = Yes, f.Reason+", which a capability in the sandbox's user namespace satisfies", ""
	}
	return f
}

func yamaScope() string {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func effective() uint64 {
	text, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "CapEff:"); ok {
			var caps uint64
			fmt.Sscanf(strings.TrimSpace(rest), "%x", &caps)
			return caps
		}
	}
	return 0
}

func readByCall() error {
	var from, to byte
	local := []unix.Iovec{{Base: &to, Len: 1}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from)), Len: 1}}
	_, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0)
	return err
}

func readByFile() error {
	fd, err := unix.Open("/proc/self/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var from, to [1]byte
	_, err = unix.Pread(fd, to[:], int64(uintptr(unsafe.Pointer(&from))))
	return err
}

// readTake takes a descriptor out of this process itself.
func readTake(shortage *error) Fact {
	f := Fact{Name: takeName, Answer: Yes, Reason: "pidfd_getfd(2) works"}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err == nil {
		defer unix.Close(self)
		var fd int
		if fd, err = unix.PidfdGetfd(self, self, 0); err == nil {
			unix.Close(fd)
			return f
		}
	}
	f.Answer, f.Reason, f.Remedy = No, "pidfd_getfd(2): "+err.Error(), ptraceRemedy
	if IsShortage(err) {
		f.Answer, f.Remedy, *shortage = Unknown, shortageRemedy, short(fmt.Errorf("pidfd_getfd(2): %w", err))
	}
	return f
}
