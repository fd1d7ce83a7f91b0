package function

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// A Call is one call of a function, in the harness.
type Call struct {
	function string
	call     *os.File
	result   *os.File
	program  *os.File
}

const sealed = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// New makes what a process needs to call a function. program is what [Program] has returned, and the Call's from here on.
func New(function string, args []string, program *os.File) (*Call, error) {
	call, err := memory("holdfast call", encodeCall(function, args), sealed)
	if err != nil {
		program.Close()
		return nil, err
	}
	result, err := memory("holdfast result", make([]byte, 1), 0)
	if err == nil {
		err = bound(result)
	}
	if err != nil {
		call.Close()
		program.Close()
		result.Close() // a nil one does not mind
		return nil, err
	}
	return &Call{function: function, call: call, result: result, program: program}, nil
}

// Files are the last of the new process's descriptors, in this order.
func (c *Call) Files() []*os.File { return []*os.File{c.call, c.result, c.program} }

// Passed is called when the process has the files.
func (c *Call) Passed() {
	c.call.Close()
	c.program.Close()
}

// Close is called instead of Result.
func (c *Call) Close() {
	c.Passed()
	c.result.Close()
}

// Result returns how the function ended; ended is what Wait returned of the process, which has ended. An error that is not the
// process's is returned as it is.
func (c *Call) Result(ended error) error {
	var exit *exec.ExitError
	if ended != nil && !errors.As(ended, &exit) {
		return ended
	}
	b := make([]byte, resultSize)
	n, err := c.result.ReadAt(b, 0)
	c.result.Close()
	if n < resultSize {
		return fmt.Errorf("sandbox: read the result of function %q: %w", c.function, err)
	}
	return decodeResult(c.function, b, ended)
}

// bound gives a result the size that it keeps.
func bound(result *os.File) error {
	if err := result.Truncate(resultSize); err != nil {
		return err
	}
	_, err := unix.FcntlInt(result.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	return os.NewSyscallError("fcntl", err)
}

// memory makes a file in memory that cannot be executed.
func memory(name string, content []byte, seals int) (*os.File, error) {
	f, err := create(name, unix.MFD_NOEXEC_SEAL)
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(content); err == nil && seals != 0 {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("sandbox: %s: %w", name, err)
	}
	return f, nil
}

// create makes a file in memory. Before Linux 6.3 there is no flag for whether it can be executed.
func create(name string, flag int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|flag)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
