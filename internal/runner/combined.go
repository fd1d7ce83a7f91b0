package runner

import (
	"bytes"
	"errors"
)

// CombinedOutput runs the command and returns what it wrote to either stream.
func (r *Run) CombinedOutput() ([]byte, error) {
	switch {
	case r == nil:
		return nil, errNoCommand
	case r.cmd.Stdout != nil:
		return nil, errors.New("exec: Stdout already set")
	case r.cmd.Stderr != nil:
		return nil, errors.New("exec: Stderr already set")
	}
	var b bytes.Buffer
	r.cmd.Stdout, r.cmd.Stderr = &b, &b
	err := r.Start()
	if err == nil {
		err = r.Wait()
	}
	if r.cmd.Process == nil {
		return nil, err
	}
	return b.Bytes(), err
}
