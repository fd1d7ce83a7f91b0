package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

func run(path string) error { return exec.Command(path).Run() }

func networkActs() []act {
	noticed := func(what string) func(s *stage) bool { return func(s *stage) bool { return s.has(what) } }
	f := func(name string, seen func(s *stage) bool, try func(s scene) error) act {
		return act{bound: policy.BoundNetwork, name: name, seen: seen, try: try}
	}
	socket := func(domain, kind, protocol int) func(scene) error {
		return func(scene) error {
			fd, err := unix.Socket(domain, kind, protocol)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	dial := func(network, address string) error {
		c, err := net.DialTimeout(network, address, 30*time.Second)
		if err == nil {
			c.Close()
		}
		return err
	}
	return []act{
		f("connect to a server on the harness's loopback", noticed("tcp"), func(s scene) error { return dial("tcp", fmt.Sprint("127.0.0.1:", s.TCP)) }),
		f("send to it with MSG_FASTOPEN", noticed("tcp"), func(s scene) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: s.TCP, Addr: [4]byte{127, 0, 0, 1}})
		}),
		f("connect by IPv6", noticed("tcp"), func(s scene) error { return dial("tcp", fmt.Sprint("[::ffff:127.0.0.1]:", s.TCP)) }),
		f("send a datagram to the harness's loopback", noticed("udp"), func(s scene) error {
			c, err := net.Dial("udp", fmt.Sprint("127.0.0.1:", s.UDP))
			if err == nil {
				_, err = c.Write([]byte("x"))
				c.Close()
			}
			return err
		}),
		f("connect to a UNIX socket outside", noticed("unix"), func(s scene) error { return dial("unix", s.Unix) }),
		f("connect to an abstract UNIX socket", noticed("abstract"), func(s scene) error { return dial("unix", s.Abstract) }),
		f("listen at a port of the harness's loopback", nil, func(s scene) error { // the port is the harness's UDP server's, which holds it there
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.Bind(fd, &unix.SockaddrInet4{Port: s.UDP, Addr: [4]byte{127, 0, 0, 1}}); err != unix.EADDRINUSE {
				return errNotThere
			}
			return nil
		}),
		f("open a raw socket", nil, socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)),
		f("open a packet socket", nil, socket(unix.AF_PACKET, unix.SOCK_RAW, 0)),
		f("open a vsock", nil, socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)),
		f("open a crypto socket", nil, socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)),
		f("open an audit socket", nil, socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)),
	}
}

func signalActs() []act {
	noticed := func(sig unix.Signal) func(s *stage) bool {
		return func(s *stage) bool { return s.has(unix.SignalName(sig)) }
	}
	sig := func(name string, signal unix.Signal, try func(s scene) error) act {
		return act{bound: policy.BoundProcesses, name: name, owned: ownsSignals, seen: noticed(signal), try: try}
	}
	return []act{
		sig("signal the harness", unix.SIGUSR1, func(s scene) error { return unix.Kill(s.Harness, unix.SIGUSR1) }),
		sig("signal it by a pidfd", unix.SIGUSR2, func(s scene) error {
			fd, err := unix.PidfdOpen(s.Harness, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, unix.SIGUSR2, nil, 0)
		}),
		sig("signal a thread of it", unix.SIGHUP, func(s scene) error { return unix.Tgkill(s.Harness, s.Harness, unix.SIGHUP) }),
		sig("signal its process group", unix.SIGWINCH, func(s scene) error { return unix.Kill(-s.Group, unix.SIGWINCH) }),
		sig("signal it as the owner of a descriptor", unix.SIGIO, func(s scene) error {
			p := make([]int, 2)
			if err := unix.Pipe(p); err != nil {
				return err
			}
			defer unix.Close(p[0])
			defer unix.Close(p[1])
			if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, s.Harness); err != nil {
				return err
			}
			if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK); err != nil {
				return err
			}
			_, err := unix.Write(p[1], []byte("x"))
			return err
		}),
	}
}

func processActs() []act {
	f := func(name string, seen func(s *stage) bool, try func(pid int) error) act {
		return act{bound: policy.BoundProcesses, name: name, seen: seen, try: func(s scene) error {
			if err := foreign(s); err != nil {
				return err
			}
			return try(s.Bystander)
		}}
	}
	return []act{
		f("trace another process", nil, func(pid int) error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := unix.PtraceSeize(pid); err != nil {
				return err
			}
			unix.PtraceDetach(pid)
			return nil
		}),
		f("read another process's memory", nil, func(pid int) error { return vmReadv(pid) }),
		f("take a descriptor of another process", nil, func(pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			got, err := unix.PidfdGetfd(fd, 0, 0)
			if err == nil {
				unix.Close(got)
			}
			return err
		}),
		f("change another process's priority", func(s *stage) bool {
			n, err := unix.Getpriority(unix.PRIO_PROCESS, s.Bystander)
			return err != nil || 20-n != 0
		}, func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 7) }),
		f("change another process's limits", func(s *stage) bool {
			var l unix.Rlimit
			return unix.Prlimit(s.Bystander, unix.RLIMIT_STACK, nil, &l) == nil && l.Cur == 12345678
		}, func(pid int) error {
			return unix.Prlimit(pid, unix.RLIMIT_STACK, &unix.Rlimit{Cur: 12345678, Max: 12345678}, nil)
		}),
		f("change another process's scheduling", func(s *stage) bool {
			a, err := unix.SchedGetAttr(s.Bystander, 0)
			return err == nil && a.Policy == unix.SCHED_BATCH
		}, func(pid int) error {
			return unix.SchedSetAttr(pid, &unix.SchedAttr{Size: 48, Policy: unix.SCHED_BATCH, Nice: 7}, 0)
		}),
		f("enter another process's namespaces", nil, func(pid int) error {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/uts", pid), unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Setns(fd, 0)
		}),
		{bound: policy.BoundProcesses, name: "attach the harness's shared memory", try: func(s scene) error { return attach(s.Shm) }},
		{bound: policy.BoundProcesses, name: "read the harness's message queue", try: func(s scene) error { return receive(s.Msg) }},
	}
}

// call makes a system call with arguments that the kernel refuses otherwise than a filter does: it went through if it was
// not refused for want of a right, or as unknown.
func call(name string, nr uintptr, args ...uintptr) act {
	return act{bound: policy.BoundSyscalls, name: name, try: func(scene) error {
		args := append(args, make([]uintptr, 6-len(args))...)
		_, _, errno := unix.Syscall6(nr, args[0], args[1], args[2], args[3], args[4], args[5])
		switch errno {
		case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EOPNOTSUPP:
			return errno
		}
		return nil
	}}
}

// none is a descriptor that is not open, so that a call that is let through fails.
const none = ^uintptr(0)

func callActs() []act {
	name := append([]byte("/nonexistent"), 0)
	p := uintptr(unsafe.Pointer(&name[0]))
	return []act{
		call("bpf", unix.SYS_BPF, 0, none, none),
		call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, none, 0, 0, none, 0),
		call("userfaultfd", unix.SYS_USERFAULTFD, none),
		call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, none),
		call("add_key", unix.SYS_ADD_KEY, none, none, none, none, 0),
		call("request_key", unix.SYS_REQUEST_KEY, none, none, none, 0),
		call("keyctl", unix.SYS_KEYCTL, 0, uintptr(0xfffffffd), 0),
		call("init_module", unix.SYS_INIT_MODULE, none, 0, none),
		call("kexec_load", unix.SYS_KEXEC_LOAD, 0, none, none, none),
		call("reboot", unix.SYS_REBOOT, 0, 0, 0, 0),
		call("swapon", unix.SYS_SWAPON, p, 0),
		call("settimeofday", unix.SYS_SETTIMEOFDAY, none, none),
		call("clock_settime", unix.SYS_CLOCK_SETTIME, none, none),
		call("sethostname", unix.SYS_SETHOSTNAME, none, none),
		call("acct", unix.SYS_ACCT, p),
		call("quotactl", unix.SYS_QUOTACTL, none, none, none, none),
		call("syslog", unix.SYS_SYSLOG, 10, 0, 0),
		call("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, none, none, 0),
		call("fanotify_init", unix.SYS_FANOTIFY_INIT, none, 0),
		call("kcmp", unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid()), 99),
		call("move_pages", unix.SYS_MOVE_PAGES, 0, 1, none, 0, none, 0),
		call("setns", unix.SYS_SETNS, none, 0),
	}
}

func mountActs() []act {
	name := append([]byte("tmpfs"), 0)
	p := uintptr(unsafe.Pointer(&name[0]))
	return []act{
		call("mount", unix.SYS_MOUNT, none, none, none, 0, 0),
		call("umount2", unix.SYS_UMOUNT2, none, 0),
		call("pivot_root", unix.SYS_PIVOT_ROOT, none, none),
		call("chroot", unix.SYS_CHROOT, none),
		call("fsopen", unix.SYS_FSOPEN, p, 0),
		call("open_tree", unix.SYS_OPEN_TREE, none, none, 0),
		call("move_mount", unix.SYS_MOVE_MOUNT, none, none, none, none, none),
		call("mount_setattr", unix.SYS_MOUNT_SETATTR, none, none, none, none, 0),
		call("unshare a user namespace", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		call("unshare a mount namespace", unix.SYS_UNSHARE, unix.CLONE_NEWNS),
	}
}

func privilegeActs() []act {
	f := func(name string, try func(s scene) error) act {
		return act{bound: policy.BoundPrivileges, name: name, try: try}
	}
	return []act{
		f("run without no_new_privs", func(scene) error {
			n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && n == 1 {
				err = errNotThere
			}
			return err
		}),
		f("hold a capability", func(scene) error {
			var data [2]unix.CapUserData
			if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
				return err
			}
			if data[0].Effective|data[0].Permitted|data[1].Effective|data[1].Permitted == 0 {
				return errNotThere
			}
			return nil
		}),
		f("become another user", func(s scene) error { return raw(unix.SYS_SETUID, uintptr(s.UID+4321)) }),
		f("join another group", func(scene) error {
			g := uint32(4321)
			return raw(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&g)))
		}),
		f("make a device", func(scene) error { return unix.Mknod("device", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))) }),
		f("run in real time", func(scene) error {
			return unix.SchedSetAttr(0, &unix.SchedAttr{Size: 48, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
		}),
		f("raise its priority", func(s scene) error {
			if s.GVisor { // keeps the value, which nothing reads (gvisor.dev/gvisor/pkg/sentry/kernel, Task.SetNiceness)
				return errNotThere
			}
			return unix.Setpriority(unix.PRIO_PROCESS, 0, -5)
		}),
	}
}

func otherActs() []act {
	return []act{
		{bound: policy.BoundResources, name: "have the kernel start the core handler", try: func(scene) error {
			var l unix.Rlimit // what it may not have is not refused: nothing is set
			err := errors.Join(unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}), unix.Getrlimit(unix.RLIMIT_CORE, &l))
			if err == nil && l.Cur != 0 {
				err = errNotThere
			}
			return err
		}},
		{bound: policy.BoundEnvironment, name: "find a secret among its variables", try: func(scene) error {
			if os.Getenv(tokenVariable) == "" {
				return errNotThere
			}
			return nil
		}},
		{bound: policy.BoundEnvironment, name: "find it in /proc/self/environ", try: func(scene) error { return reads("/proc/self/environ", tokenVariable+"=") }},
	}
}

// raw makes a system call in this thread alone.
func raw(nr uintptr, args ...uintptr) error {
	args = append(args, make([]uintptr, 3-len(args))...)
	if _, _, errno := unix.RawSyscall(nr, args[0], args[1], args[2]); errno != 0 {
		return errno
	}
	return nil
}

// vmReadv reads a byte of where this program's text lies, which is the same for the bystander.
func vmReadv(pid int) error {
	var b [1]byte
	at := uintptr(unsafe.Pointer(unsafe.StringData(mark)))
	_, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: at, Len: 1}}, 0)
	return err
}

// segment makes a segment of SysV shared memory that any user may attach.
func segment() (id int, size uintptr, err error) {
	n, _, errno := unix.Syscall(unix.SYS_SHMGET, 0, 4096, unix.IPC_CREAT|0o666)
	if errno != 0 {
		return -1, 0, errno
	}
	return int(n), 4096, nil
}

func removeSegment(id int) { unix.Syscall(unix.SYS_SHMCTL, uintptr(id), unix.IPC_RMID, 0) }

func attach(id int) error {
	at, _, errno := unix.Syscall(unix.SYS_SHMAT, uintptr(id), 0, 0)
	if errno != 0 {
		return errno
	}
	unix.Syscall(unix.SYS_SHMDT, at, 0, 0)
	return nil
}

// queue makes a SysV message queue with a message.
func queue() (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_MSGGET, 0, unix.IPC_CREAT|0o666, 0)
	if errno != 0 {
		return -1, errno
	}
	m := struct {
		kind int64
		text [8]byte
	}{kind: 1}
	if _, _, errno := unix.Syscall6(unix.SYS_MSGSND, n, uintptr(unsafe.Pointer(&m)), 8, unix.IPC_NOWAIT, 0, 0); errno != 0 {
		return int(n), errno
	}
	return int(n), nil
}

func removeQueue(id int) { unix.Syscall(unix.SYS_MSGCTL, uintptr(id), unix.IPC_RMID, 0) }

func receive(id int) error {
	var m struct {
		kind int64
		text [8]byte
	}
	_, _, errno := unix.Syscall6(unix.SYS_MSGRCV, uintptr(id), uintptr(unsafe.Pointer(&m)), 8, 0, unix.IPC_NOWAIT, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
