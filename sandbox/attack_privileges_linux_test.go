package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _, _ = offer(attacks, "privileges", privilegeActs), offer(attacks, "system calls", callActs)

var (
	notEveryRoot = []error{unix.EPERM}  // that of a container lacks capabilities
	noFile       = []error{unix.ENOENT} // a kernel may be built without it
)

// privilegeActs try to hold or gain what the tool must not have.
var privilegeActs = []act{
	{name: "set no_new_privs back", never: "there is no way back (PR_SET_NO_NEW_PRIVS(2const))", try: func(ground) error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) }},
	{name: "run without no_new_privs", tame: true, lacks: inherited(errNoNewPrivs, hasNoNewPrivs), try: func(ground) error {
		if hasNoNewPrivs() {
			return errNoNewPrivs
		}
		return nil
	}},
	{name: "hold a capability", bare: true, try: func(ground) error {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			if strings.HasPrefix(name, "Cap") && name != "CapBnd" && strings.Trim(strings.TrimSpace(value), "0") != "" {
				return nil
			}
		}
		return errors.New("all sets are empty")
	}},
	{name: "raise a capability", bare: true, try: func(ground) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
		return unix.Capset(&header, &data[0])
	}},
	{name: "raise an ambient capability", bare: true, try: func(ground) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		data[0].Inheritable |= 1 << unix.CAP_NET_ADMIN
		unix.Capset(&header, &data[0]) // refused to one who does not hold it
		return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_ADMIN, 0, 0)
	}},
	{name: "take another user's id", bare: true, try: func(ground) error { return rawCall(unix.SYS_SETRESUID, 1, 1, 1) }},
	{name: "take another group's id", bare: true, try: func(ground) error { return rawCall(unix.SYS_SETRESGID, 1, 1, 1) }},
	{name: "change the groups", bare: true, try: func(ground) error { return rawCall(unix.SYS_SETGROUPS, 0, 0) }},
	{name: "gain by a program set to another user", bare: true, try: func(ground) error {
		// The test has made it set-user-ID and set-group-ID to user 1.
		out, err := exec.Command(os.Getenv("ATTACK_SETUID"), "-u").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if got := strings.TrimSpace(string(out)); got == strconv.Itoa(os.Getuid()) {
			return errors.New("it runs as its caller")
		}
		return nil
	}},
	{name: "make a program set to one's own user gain for others", tame: true, try: func(f ground) error {
		return unix.Chmod(f.write+"/file", 0o6777) // the file is the tool's; who runs it outside gains the tool's user
	}},
	{name: "raise a limit", bare: true, lacks: notEveryRoot, try: func(ground) error {
		var l unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NICE, &l); err != nil {
			return err
		}
		l.Max++
		return unix.Setrlimit(unix.RLIMIT_NICE, &l)
	}},
	{name: "raise one's priority", bare: true, try: func(ground) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }},
	{name: "dump core", bare: true, try: func(ground) error {
		l := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		err := errors.Join(unix.Prlimit(0, unix.RLIMIT_CORE, &l, nil), unix.Prlimit(0, unix.RLIMIT_CORE, nil, &l))
		if err == nil && l.Cur <= 1 {
			err = fmt.Errorf("the limit is %d", l.Cur)
		}
		return err
	}},
	{name: "see a secret in the environment", tame: true, try: func(ground) error {
		if os.Getenv("ATTACK_API_KEY") == "" {
			return errNotThere
		}
		return nil
	}},
	{name: "find the harness's key", tame: true, try: func(ground) error {
		_, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", "holdfast-attack", 0)
		return err
	}},
	{name: "read the list of keys", tame: true, unheld: []string{noNamespaces}, try: func(ground) error { return containsText("/proc/keys", "holdfast-attack") }},
	{name: "set the clock", unheld: []string{noProfile}, try: func(ground) error { return reached(rawCall(unix.SYS_CLOCK_SETTIME, 0, 0), unix.EFAULT) }},
	{name: "set the host's name", bare: true, try: func(ground) error { return unix.Sethostname([]byte("x")) }},
	{name: "read the kernel's log", bare: true, try: func(ground) error { return rawCall(unix.SYS_SYSLOG, 3, uintptr(unsafe.Pointer(new([64]byte))), 64) }},
	{name: "read the kernel's log by its file", bare: true, try: func(ground) error { return open("/proc/kmsg", unix.O_RDONLY|unix.O_NONBLOCK) }},
	{name: "read the kernel's memory", bare: true, lacks: noFile, try: func(ground) error { return readSome("/proc/kcore") }},
	{name: "choose the core dump's program", bare: true, try: func(ground) error { return open("/proc/sys/kernel/core_pattern", unix.O_WRONLY) }},
	{name: "choose the module loader", bare: true, lacks: noFile, try: func(ground) error { return open("/proc/sys/kernel/modprobe", unix.O_WRONLY) }},
	{name: "press the system request key", bare: true, lacks: noFile, try: func(ground) error { return open("/proc/sysrq-trigger", unix.O_WRONLY) }},
	{name: "open anything of the machine's in /proc for writing", bare: true, try: openMachineFiles},
	{name: "open anything in /sys for writing", bare: true, try: func(ground) error { return writableBelow("/sys") }},
	{name: "open a device but for the basic ones", bare: true, try: otherDevices},
}

func containsText(path, text string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return shortError(err)
	}
	if !strings.Contains(string(b), text) {
		return errNotThere
	}
	return nil
}

// openMachineFiles tries every file of /proc that belongs to no process.
func openMachineFiles(ground) error {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, n := range names {
		// What is written to pressure belongs to the descriptor, and everybody may (PSI's documentation, "Userspace monitor usage").
		if _, err := strconv.Atoi(n.Name()); err == nil || n.Type()&os.ModeSymlink != 0 || n.Name() == "pressure" {
			continue
		}
		if err := writableBelow("/proc/" + n.Name()); err == nil {
			return nil
		}
	}
	return errors.New("nothing is writable")
}

// writableBelow answers nil when something below can be opened for writing,
// and prints what. Nothing is written.
func writableBelow(dir string) error {
	found := ""
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && found == "" && open(p, unix.O_WRONLY|unix.O_NONBLOCK) == nil {
			found = p
		}
		return nil
	})
	if found == "" {
		return errors.New("nothing is writable")
	}
	fmt.Fprintln(os.Stderr, "writable:", found)
	return nil
}

// otherDevices looks for device files that can be opened.
func otherDevices(ground) error {
	found := ""
	filepath.WalkDir("/dev", func(p string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeDevice == 0 || strings.HasPrefix(p, "/dev/pts/") {
			return nil
		}
		switch p {
		case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty":
			return nil
		}
		if open(p, unix.O_RDONLY|unix.O_NONBLOCK) == nil {
			found = p
		}
		return nil
	})
	if found == "" {
		return errors.New("there is none")
	}
	fmt.Fprintln(os.Stderr, "device:", found)
	return nil
}

// callActs make calls that no ordinary tool needs.
var callActs = []act{
	{name: "io_uring", unheld: []string{noProfile}, try: func(ground) error {
		return rawCall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(new([120]byte))))
	}},
	{name: "clone3 with a user namespace", bare: true, try: func(ground) error {
		args := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, err := unix.Wait4(int(pid), nil, unix.WALL, nil)
		return err
	}},
	{name: "a new user namespace", bare: true, try: func(ground) error { return unshareIn(unix.CLONE_NEWUSER) }},
	{name: "a new network namespace", bare: true, try: func(ground) error { return unshareIn(unix.CLONE_NEWNET) }},
	{name: "a new pid namespace", bare: true, try: func(ground) error { return unshareIn(unix.CLONE_NEWPID) }},
	{name: "bpf", bare: true, try: func(ground) error {
		return rawCall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&[16]uint32{1, 4, 4, 1})), 64)
	}},
	{name: "perf_event_open", unheld: []string{noProfile}, lacks: []error{unix.EACCES}, try: func(ground) error {
		attr := [16]uint64{0: 112<<32 | 1}
		return rawCall(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&attr)), 0, ^uintptr(0), ^uintptr(0), 0)
	}},
	{name: "userfaultfd", unheld: []string{noProfile}, try: func(ground) error { return rawCall(unix.SYS_USERFAULTFD, 1) }},
	{name: "add_key", tame: true, try: func(ground) error {
		_, err := unix.AddKey("user", "x", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	}},
	{name: "fanotify", unheld: []string{noProfile}, try: func(ground) error { return rawCall(unix.SYS_FANOTIFY_INIT, 0x200, 0) }},
	{name: "personality with data that can be executed", unheld: []string{noProfile}, try: func(ground) error { return rawCall(unix.SYS_PERSONALITY, 0x440000) }},
	{name: "personality without address randomization", works: true, try: func(ground) error { return rawCall(unix.SYS_PERSONALITY, 0x40000) }},
	{name: "load a module", bare: true, try: func(ground) error {
		return reached(rawCall(unix.SYS_FINIT_MODULE, ^uintptr(0), cstring(""), 0), unix.EBADF)
	}},
	{name: "reboot", bare: true, try: func(ground) error { return reached(rawCall(unix.SYS_REBOOT, 0xfee1dead, 672274793, 0, 0), unix.EINVAL) }}, // ctrl-alt-del off, which a pid namespace does not have
	{name: "a further filter", works: true, try: func(ground) error {
		allow := [1]uint64{6 | 0x7fff0000<<32}
		prog := struct {
			n    uint16
			code *uint64
		}{1, &allow[0]}
		return rawCall(unix.SYS_SECCOMP, 1, 0, uintptr(unsafe.Pointer(&prog)))
	}},
	{name: "trace a child", works: true, try: traceChild(false)},
	{name: "change a traced child's call into a forbidden one", unheld: []string{noProfile}, try: traceChild(true)},
}

func TestKernelAttackPrivileges(t *testing.T) {
	kerneltest.Long(t)
	t.Setenv("ATTACK_API_KEY", "secret")
	setuid := makeSetuid(t)
	t.Setenv("ATTACK_SETUID", setuid)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		// The key is in a session keyring of the child's own.
		_, joined := unix.KeyctlJoinSessionKeyring("holdfast-attack")
		_, added := unix.AddKey("user", "holdfast-attack", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING)
		if err := errors.Join(joined, added); err != nil && !kerneltest.Filtered() {
			t.Fatal(err)
		}
		attackPlainly(t, "privileges")
		attackWith(t, "privileges", w, func(base string, p *Policy) { p.Files.Read = append(p.Files.Read, os.Getenv("ATTACK_SETUID")) })
	})
}

// makeSetuid copies a program and sets it to another user, if the test can.
func makeSetuid(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("ATTACK_SETUID"); named != "" {
		return named // in a child: the test has made it
	}
	text, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "setuid")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := filepath.Join(dir, "id")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(p, text, 0o755)); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := errors.Join(os.Chown(p, 1, 1), unix.Chmod(p, 0o6755)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestKernelAttackSystemCalls(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) { attackWith(t, "system calls", w, nil) })
}

var errNotThere = errors.New("it is not there")

var errNoNewPrivs = errors.New("it is set")

func hasNoNewPrivs() bool {
	v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err != nil || v == 1
}

// inherited is the error of an attack that fails without walls too where the test's own process has the wall: kerneltest
// sets no_new_privs for an ordinary user's test that lacks a feature.
func inherited(why error, has func() bool) []error {
	if has() {
		return []error{why}
	}
	return nil
}
