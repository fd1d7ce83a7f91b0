package launch

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
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

// IsDefaultCancel reports whether cmd's Cancel is the one that
// exec.CommandContext sets, which kills the process.
func IsDefaultCancel(cmd *exec.Cmd) bool {
	model := exec.CommandContext(context.Background(), "/")
	return reflect.ValueOf(cmd.Cancel).Pointer() == reflect.ValueOf(model.Cancel).Pointer()
}
