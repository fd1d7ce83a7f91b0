package launch

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// ContextOf reads the context that an exec.Cmd was made with; nil: none. os/exec
// has no way to ask, so it reads the unexported field, and fails when this Go's
// exec.Cmd has none of that name and type.
func ContextOf(cmd *exec.Cmd) (context.Context, error) {
	at, err := contextField(cmd)
	if err != nil {
		return nil, err
	}
	return *at, nil
}

// SetContext makes ctx the context of a command that has not been started. What its
// StdoutPipe and the like have made, which other unexported fields hold, stays.
func SetContext(cmd *exec.Cmd, ctx context.Context) error {
	at, err := contextField(cmd)
	if err == nil {
		*at = ctx
	}
	return err
}

func contextField(cmd *exec.Cmd) (*context.Context, error) {
	f := reflect.ValueOf(cmd).Elem().FieldByName("ctx")
	if !f.IsValid() || f.Type() != reflect.TypeFor[context.Context]() {
		return nil, fmt.Errorf("sandbox: this Go's exec.Cmd has no context to find: %w", errors.ErrUnsupported)
	}
	return (*context.Context)(unsafe.Pointer(f.UnsafeAddr())), nil
}

// IsDefaultCancel reports whether cmd's Cancel is the one that
// exec.CommandContext sets, which kills the process.
func IsDefaultCancel(cmd *exec.Cmd) bool {
	model := exec.CommandContext(context.Background(), "/")
	return reflect.ValueOf(cmd.Cancel).Pointer() == reflect.ValueOf(model.Cancel).Pointer()
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
