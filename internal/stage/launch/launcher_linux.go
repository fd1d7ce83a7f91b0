package launch

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// A Launcher is one way to execute a stage. It serves any number of stages.
type Launcher struct {
	Path    string      // of the exec.Cmd
	files   []*os.File  // the harness's executable and the trampoline; none: the re-exec
	fd      int         // the trampoline\'s descriptor
	inodes  [][2]uint64 // device and number of each file
	refused atomic.Bool
}

// newLauncher returns a Launcher that needs files.
func newLauncher(path string, files ...*os.File) (*Launcher, error) {
	l := &Launcher{Path: path, files: files}
	for _, f := range files {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return nil, os.NewSyscallError("fstat", err)
		}
		l.fd = int(f.Fd())
		l.inodes = append(l.inodes, [2]uint64{uint64(st.Dev), st.Ino})
	}
	return l, nil
}

// Check fails when this program has closed a file that the launcher needs, as programs do that close
// every descriptor: another file could have the number by now, and Path name that.
func (l *Launcher) Check() error {
	for i, f := range l.files {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil || l.inodes[i] != [2]uint64{uint64(st.Dev), st.Ino} {
			return fmt.Errorf("descriptor %d, which a stage is executed from, was closed by this program: %w", f.Fd(), unix.EBADF)
		}
	}
	return nil
}

// Layout says where the descriptors of a stage lie in the child.
type Layout struct {
	Program int // the stage's program; the control socket is the next
	Given   int // where the files of a policy begin
	Swapped int // where the trampoline lies in the place of one of the tool's, which is at Program + 3; 0: it does not

	// Env is the stage's own environment: it holds nothing of the tool's. The trampoline reads the first variable. The others are for a stage
	// with a Go runtime: one thread is enough for it, and it never collects garbage.
	Env []string
}

// Layout lays out the descriptors for a tool that has the first tools.
func (l *Launcher) Layout(tools int) Layout {
	const after = 8 // program, socket, the launcher's two, the most that a policy gives
	at := Layout{Program: tools}
	if len(l.files) > 0 && tools+after > l.fd {
		at.Program, at.Swapped = max(tools, l.fd+1), l.fd
	}
	at.Given = at.Program + 2 + len(l.files)
	at.Env = []string{wire.FDName + "=" + strconv.Itoa(at.Program), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1"}
	return at
}

// Files returns the files of a stage: the tool's, then the program, the socket,
// and what this launcher needs. The trampoline itself is among them, at the descriptor that Path names if the files reach so far, so that
// os/exec, as it moves descriptors in the child, does not put another in its place. Those of a policy come last.
func (l *Launcher) Files(tools []*os.File, program, control *os.File, given ...*os.File) []*os.File {
	const std = 3
	at := l.Layout(std + len(tools))
	all := make([]*os.File, at.Program-std, at.Given-std+len(given))
	copy(all, tools)
	all = append(append(all, program, control), l.files...)
	if last := len(all) - 1; at.Swapped > 0 {
		all[at.Swapped-std], all[last] = all[last], all[at.Swapped-std]
	}
	return append(all, given...)
}

// Refuse makes Default return the re-exec from now on: the trampoline was tried, and failed.
func (l *Launcher) Refuse() { l.refused.Store(true) }

// Reexec is the launcher that executes the harness's own file.
var Reexec = &Launcher{Path: wire.ExecPath}

// Trampoline returns the launcher that executes the trampoline, or says why there can be none.
var Trampoline = sync.OnceValues(newTrampoline)

// Default returns the trampoline, or, where that cannot be executed, the re-exec. The error wraps
// errors.ErrUnsupported: this code is not in the file of the process's program, which may be anything.
func Default() (*Launcher, error) {
	t, err := Trampoline()
	switch {
	case errors.Is(err, errNotOurs):
		return nil, err
	case err != nil || t.refused.Load():
		return Reexec, nil
	}
	return t, nil
}

// HasThreads reports whether the stage has the threads of a Go runtime, as it has by the re-exec.
func HasThreads() bool {
	l, err := Default()
	return err != nil || l == Reexec
}

var errNotOurs = fmt.Errorf("sandbox: this program's own executable does not hold this package (a plugin or shared library does): it cannot be a stage: %w", errors.ErrUnsupported)

// IgnoredSignals is the set of signals that a child of this process would
// ignore, bit n-1 for signal n: of all dispositions execve(2) keeps only that. The kernel is asked of each
// standard signal; real-time ones the Go runtime handles from the start, so that one is ignored only if os/signal knows of it.
func IgnoredSignals() uint64 {
	type action struct{ handler, flags, restorer, mask uint64 }
	const ignore, lastStandard = 1, 31 // SIG_IGN; signal(7)
	var ignored uint64
	for n := uint64(1); n <= wire.NumberSignals; n++ {
		if n > lastStandard && !signal.Ignored(syscall.Signal(n)) {
			continue
		}
		var a action
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&a)), 8, 0, 0)
		if errno == 0 && a.handler == ignore {
			ignored |= 1 << (n - 1)
		}
	}
	return ignored
}
