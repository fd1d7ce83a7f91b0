package runner

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Engine is what a sandbox has of its policy on macOS.
type Engine struct {
	Profile darwin.Profile
	Limits  []rlimit.Setting
}

// Emission is the profile of one run.
func (s *Sandbox) Emission(run darwin.Run) (emit.Emission, error) {
	e, err := emit.Emit(s.Profile.Grants(run))
	if bad := (*emit.Error)(nil); errors.As(err, &bad) {
		return e, &policy.PolicyError{Field: bad.Field, Value: bad.Value, Problem: bad.Problem, Remedy: "no profile can say it: use another name", Err: err}
	}
	return e, err
}

// Try has the profile applied to a program that does nothing.
func (s *Sandbox) Try() error {
	e, err := s.Emission(darwin.Run{Tag: newTag(), Proxies: darwin.StandInPorts})
	if err != nil {
		return err
	}
	argv := darwin.ProfileArgs(darwin.SandboxExec, e, "/usr/bin/true", nil)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return &policy.UnsupportedError{Bound: policy.BoundFiles, What: "no profile can be applied", Reason: err.Error(), Remedy: "run on a macOS that has " + darwin.SandboxExec}
	}
	status := cmd.ProcessState.ExitCode()
	return trialError(darwin.JudgeTrial(status, stderr.Bytes()), status, stderr.Bytes())
}

// newTag is what one run's denials are found by.
func newTag() string {
	var b [8]byte
	rand.Read(b[:])
	return "holdfast-" + hex.EncodeToString(b[:])
}

// executable is the harness's own file, which is the stage's too.
var executable = sync.OnceValues(os.Executable)
