package launch

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// A Launcher is one way to execute a stage. It serves any number of stages.
type Launcher struct {
	Path string // of the exec.Cmd
	// MaxFiles is how many descriptors the tool may have, with the standard ones.
	MaxFiles int
	files    []*os.File
	inodes   [][2]uint64 // device and number of each file
	refused  atomic.Bool
}

// newLauncher returns a Launcher that needs files.
func newLauncher(path string, most int, files ...*os.File) (*Launcher, error) {
	l := &Launcher{Path: path, MaxFiles: most, files: files}
	for _, f := range files {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return nil, os.NewSyscallError("fstat", err)
		}
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

// FirstGiven returns the descriptor at which the files of a policy begin, when the tool's descriptors are
// the first tools.
func (l *Launcher) FirstGiven(tools int) int { return tools + 2 + len(l.files) }

// Files returns the files of a stage: the tool's, then the program, the socket,
// and what this launcher needs. The trampoline itself is among them, so that os/exec, as it
// moves descriptors in the child, does not put another in its place, which Path
// would then name. Those of a policy come last.
func (l *Launcher) Files(tools []*os.File, program, control *os.File, given ...*os.File) []*os.File {
	all := make([]*os.File, 0, len(tools)+2+len(l.files)+len(given))
	return append(append(append(append(all, tools...), program, control), l.files...), given...)
}

// Refuse makes Default return the re-exec from now on: the trampoline was tried, and failed.
func (l *Launcher) Refuse() { l.refused.Store(true) }

var reexec = &Launcher{Path: wire.ExecPath, MaxFiles: 1 << 20}

// Reexec returns the launcher that executes the harness's own file.
func Reexec() *Launcher { return reexec }

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
		return reexec, nil
	}
	return t, nil
}

// HasThreads reports whether the stage has the threads of a Go runtime, as it has by the re-exec.
func HasThreads() bool {
	l, err := Default()
	return err != nil || l == reexec
}

var errNotOurs = fmt.Errorf("sandbox: this program's own executable does not hold this package (a plugin or shared library does): it cannot be a stage: %w", errors.ErrUnsupported)

// Environment is the stage's own environment: it holds nothing of the tool's.
// The trampoline reads the first variable. The others are for a stage with a Go
// runtime: one thread is enough for it, and it never collects garbage.
func Environment(programFD int) []string {
	return []string{fmt.Sprintf("%s=%d", wire.FDName, programFD), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1"}
}

// IgnoredSignals is the set of signals that a child of this process would
// ignore, bit n-1 for signal n: of all dispositions execve(2) keeps only that.
func IgnoredSignals() uint64 {
	type action struct{ handler, flags, restorer, mask uint64 }
	const ignore = 1 // SIG_IGN
	var ignored uint64
	for n := uint64(1); n <= wire.NumberSignals; n++ {
		var a action
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&a)), 8, 0, 0)
		if errno == 0 && a.handler == ignore {
			ignored |= 1 << (n - 1)
		}
	}
	return ignored
}
