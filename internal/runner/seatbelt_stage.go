//go:build unix

package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/rlimit"
	"golang.org/x/sys/unix"
)

// stageFailure is what the stage says over its pipe.
type stageFailure struct {
	Step  string
	Errno syscall.Errno
}

// runStage is the stage: it sets limits on itself and executes sandbox-exec, and
// does not return. It runs in the harness's own file, before main, since limits
// cannot be set on another process and the harness must keep its own.
func runStage(args []string) {
	pipe, limits, argv, err := darwin.ParseStage(args)
	if err != nil {
		os.Exit(darwin.ExitSystem)
	}
	syscall.CloseOnExec(pipe)
	for _, s := range limits {
		if err := setLimit(s); err != nil {
			stageFails(pipe, "limit "+s.String(), err)
		}
	}
	stageFails(pipe, "execute "+argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}

func stageFails(pipe int, step string, err error) {
	f := stageFailure{Step: step}
	f.Errno, _ = err.(syscall.Errno)
	text, _ := json.Marshal(f)
	syscall.Write(pipe, text)
	os.Exit(darwin.ExitSystem)
}

// KernelResources are the limits that every unix has, by their own numbers.
var KernelResources = map[rlimit.Resource]int{
	rlimit.AS: unix.RLIMIT_AS, rlimit.Core: unix.RLIMIT_CORE, rlimit.CPU: unix.RLIMIT_CPU, rlimit.Data: unix.RLIMIT_DATA, rlimit.FSize: unix.RLIMIT_FSIZE,
	rlimit.MemLock: unix.RLIMIT_MEMLOCK, rlimit.NoFile: unix.RLIMIT_NOFILE, rlimit.NProc: unix.RLIMIT_NPROC, rlimit.RSS: unix.RLIMIT_RSS, rlimit.Stack: unix.RLIMIT_STACK,
}

func setLimit(s rlimit.Setting) error {
	number, ok := KernelResources[s.Resource]
	if !ok {
		return syscall.ENOSYS
	}
	// syscall's, not unix's: it tells the runtime to leave NoFile as it is set.
	return syscall.Setrlimit(number, &syscall.Rlimit{Cur: kernelLimit(s.Soft), Max: kernelLimit(s.Hard)})
}

// kernelLimit is a limit as the kernel writes it: macOS has a signed infinity.
func kernelLimit(n uint64) uint64 { return min(n, uint64(unix.RLIM_INFINITY&(1<<64-1))) }

// stageError reads what the stage has said before its pipe closed; nil: nothing.
func stageError(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	var f stageFailure
	if err := json.Unmarshal(text, &f); err != nil {
		return &StartError{Step: "run the stage", In: "stage", Err: fmt.Errorf("it said %q", errtext.Shorten(string(text)))}
	}
	return &StartError{Step: f.Step, In: "stage", Err: f.Errno}
}
