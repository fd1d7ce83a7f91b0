package runner

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// defaults are the environment and the directory that a session has set for its commands, where these have none of their own.
type defaults struct {
	mu  sync.Mutex
	env []string // nil: the policy's
	dir string   // "": as startDir finds it
}

func (d *defaults) get() ([]string, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.env, d.dir
}

// setEnv copies env.
func (d *defaults) setEnv(env []string) error {
	if err := checkVariables(env); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.env = slices.Clone(env)
	return nil
}

// setDir takes an absolute directory that the policy shows, or "".
func (d *defaults) setDir(dir string, shows func(string) bool) error {
	switch {
	case strings.ContainsRune(dir, 0):
		return &policy.PolicyError{Field: "Dir", Value: dir, Problem: "contains a NUL byte", Remedy: "remove it", Err: syscall.EINVAL}
	case dir != "" && !filepath.IsAbs(dir):
		return &policy.PolicyError{Field: "Dir", Value: dir, Problem: "is not absolute", Remedy: "make it absolute (filepath.Abs)", Err: syscall.EINVAL}
	case dir != "" && !shows(dir):
		return hiddenDir(dir)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dir = dir
	return nil
}

// hiddenDir is the error of a working directory that is not there inside.
func hiddenDir(dir string) error {
	return &policy.PolicyError{Field: "Dir", Value: dir, Problem: "the policy does not show the working directory", Remedy: "add it to Files.Read or Files.Write, or set the command's Dir, or Policy.Dir, to one that is shown", Err: fs.ErrNotExist}
}

// checkVariables refuses what execve(2) cannot carry.
func checkVariables(env []string) error {
	for i, e := range env {
		if strings.ContainsRune(e, 0) {
			return &policy.PolicyError{Field: fmt.Sprintf("Env[%d]", i), Problem: "contains a NUL byte", Remedy: "remove it", Err: syscall.EINVAL}
		}
	}
	return nil
}
