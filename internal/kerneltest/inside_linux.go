package kerneltest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const capSysResource = unix.CAP_SYS_RESOURCE

// broken is the exit status of a child that could not be prepared.
const broken = 125

var (
	entered bool        // Main runs
	inside  *childState // this process is a child; nil in a test process

	childNeeds []Fact // see Main
)

// childState is the child's side of one call of InChild.
type childState struct {
	spec
	record  *os.File
	running bool
}

// Main runs the tests of a package and exits with their status, or is one of Programs;
// TestMain does nothing else. In a child it first makes the child what InChild was told. What InChild's children need, but those from which
// it is taken, are facts: their tests are skipped where one does not hold, and the package's examples.
func Main(m *testing.M, needs ...Fact) {
	beProgram()
	entered = true
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM} {
		if signal.Ignored(s) { // as under nohup(1): a shell among the children could set no trap. A caught one has its default after execve
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	s, err := readSpec()
	if err == nil && s == nil && !slices.Contains(os.Args, noTest) { // neither a child, nor a process by which a fact asks
		need(needs)
	}
	if err == nil && s != nil && !s.Prepared {
		err = prepare(*s)
	}
	if err == nil && s != nil {
		inside, err = begin(*s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(broken)
	}
	os.Exit(m.Run())
}

// need notes what children need. An example cannot skip itself, and is left out where that does not hold.
func need(facts []Fact) {
	for _, f := range facts {
		f.Check = sync.OnceValue(f.Check)
		childNeeds = append(childNeeds, f)
		if err := f.Check(); err != nil && os.Getenv("CI") != "true" {
			fmt.Fprintf(os.Stderr, "examples are skipped: need %s: %v\n", f.Name, err)
			flag.Set("test.skip", "^Example") // a -skip of the command line's is the one that counts
		}
	}
}

// prepare carries the spec out on this thread and then executes this program
// anew; it returns only if that fails. The new program is a process like any
// other of its user: execve makes it dumpable again, which a change of user had
// ended, and leaves this one thread with its filter.
func prepare(s spec) error {
	runtime.LockOSThread()
	var rules []refusal
	for _, f := range s.Without {
		r, err := refusals(f)
		if err != nil {
			return err
		}
		rules = append(rules, r...)
	}
	if s.without(MoreUserNamespaces) {
		// The file means the user namespace of who opens it (namespaces(7)).
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return fmt.Errorf("kerneltest: %w", err)
		}
	}
	if s.without(WholeProc) {
		if err := coverProc(); err != nil {
			return fmt.Errorf("kerneltest: cover parts of /proc: %w", err)
		}
	}
	if s.Home != "" {
		if err := s.makeHome(); err != nil {
			return fmt.Errorf("kerneltest: make %s: %w", s.Home, err)
		}
	}
	if s.without(MoreUserNamespaces) || s.without(WholeProc) || s.Home != "" {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return fmt.Errorf("kerneltest: ambient capabilities: %w", err)
		}
	}
	// The filter first: root can load one without no_new_privs.
	if err := install(rules); err != nil {
		return err
	}
	if s.SetUser {
		if err := become(s.UID, s.GID); err != nil {
			return err
		}
	}
	s.Prepared = true
	marker, err := s.env()
	if err != nil {
		return err
	}
	return fmt.Errorf("kerneltest: execve: %w", syscall.Exec(os.Args[0], os.Args, append(os.Environ(), marker)))
}

// makeHome makes Child.Home.
func (s spec) makeHome() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", topOf(s.Home), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Home, 0o755); err != nil {
		return err
	}
	return errors.Join(os.Chmod(s.Home, 0o700), os.Chown(s.Home, s.UID, s.GID))
}

// coverProc covers what Docker does (defaultMaskedPaths and defaultReadonlyPaths of github.com/moby/moby/oci), each in one of its ways.
func coverProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("/dev/null", "/proc/devices", "", unix.MS_BIND, ""); err != nil && err != unix.ENOENT {
		return err
	}
	if err := unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	const locked = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC // an ordinary user may not take them off
	return unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|locked, "")
}

// become gives this thread a user and no supplementary groups.
func become(uid, gid int) error {
	for _, step := range []struct {
		name    string
		nr      uintptr
		a, b, c uintptr
	}{
		{"setgroups", unix.SYS_SETGROUPS, 0, 0, 0},
		{"setresgid", unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
		{"setresuid", unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
	} {
		if _, _, errno := unix.RawSyscall(step.nr, step.a, step.b, step.c); errno != 0 {
			return fmt.Errorf("kerneltest: %s: %w", step.name, errno)
		}
	}
	return nil
}

// begin makes this process a prepared child: it dies with its parent, and the
// record is where no program it starts will find it.
func begin(s spec) (*childState, error) {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return nil, fmt.Errorf("kerneltest: PR_SET_PDEATHSIG: %w", err)
	}
	if os.Getppid() != s.Parent {
		return nil, fmt.Errorf("kerneltest: the parent %d is gone", s.Parent)
	}
	fd, err := unix.FcntlInt(recordFD, unix.F_DUPFD_CLOEXEC, 100)
	if err != nil {
		return nil, fmt.Errorf("kerneltest: the record: %w", err)
	}
	if err := unix.Close(recordFD); err != nil {
		return nil, fmt.Errorf("kerneltest: the record: %w", err)
	}
	return &childState{spec: s, record: os.NewFile(uintptr(fd), "record")}, nil
}

// run runs the body if this is the call that the child is for, and ends the
// test after it.
func (c *childState) run(t *testing.T, call int, body func(t *testing.T)) {
	t.Helper()
	if c.running {
		t.Fatal("kerneltest: InChild in the body of InChild")
	}
	if t.Name() != c.Test || call != c.Call {
		return
	}
	runtime.LockOSThread()
	c.running = true
	c.write(t, began)
	returned := false
	defer func() {
		// Neither after a panic, whose status says it, nor twice.
		switch {
		case t.Failed():
			c.write(t, failed)
			t.FailNow()
		case returned:
			c.write(t, passed)
			t.SkipNow()
		case t.Skipped():
			c.write(t, skipped)
		}
	}()
	body(t)
	returned = true
}

func (c *childState) write(t *testing.T, record string) {
	if _, err := c.record.WriteString(record); err != nil {
		t.Errorf("kerneltest: the record: %v", err)
	}
}
