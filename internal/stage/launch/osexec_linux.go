package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"sync"
	"unsafe"
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

// AtEndOfStart has Start of a command call f when it ends, whether the process was started or not. Start closes there what it keeps for that in an
// unexported field, as the child's ends of pipes. In a Go whose exec.Cmd has none of that name and type f is never called.
func AtEndOfStart(cmd *exec.Cmd, f func()) {
	if offset := closersOffset(); offset != 0 {
		list := (*[]io.Closer)(unsafe.Add(unsafe.Pointer(cmd), offset))
		*list = append(*list, atClose(f))
	}
}

// closersOffset is where exec.Cmd has that field; 0: nowhere.
var closersOffset = sync.OnceValue(func() uintptr {
	f, has := reflect.TypeFor[exec.Cmd]().FieldByName("childIOFiles")
	if !has || f.Type != reflect.TypeFor[[]io.Closer]() {
		return 0
	}
	return f.Offset
})

// atClose is an [io.Closer] of a function.
type atClose func()

func (f atClose) Close() error { f(); return nil }

// IsDefaultCancel reports whether cmd's Cancel is the one that
// exec.CommandContext sets, which kills the process.
func IsDefaultCancel(cmd *exec.Cmd) bool {
	model := exec.CommandContext(context.Background(), "/")
	return reflect.ValueOf(cmd.Cancel).Pointer() == reflect.ValueOf(model.Cancel).Pointer()
}
