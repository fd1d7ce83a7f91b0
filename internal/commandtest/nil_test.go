package commandtest

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// A harness that does not look at New's error is told by Start, and nothing runs.
func TestACommandOfANilSandboxDoesNotStart(t *testing.T) {
	s, bad := sandbox.New(sandbox.Policy{Files: sandbox.Files{Read: []string{"not absolute"}}})
	if bad == nil || s != nil {
		t.Fatalf("New returned %v, %v", s, bad)
	}
	for _, c := range []*sandbox.Cmd{s.Command("true"), s.CommandContext(t.Context(), "true")} {
		if err := c.Run(); err == nil || errors.Is(err, errors.ErrUnsupported) || c.Process != nil {
			t.Errorf("Run returned %v", err)
		}
	}
}

// TestTheZeroCmdSaysWhatOsExecDoes, and does not panic.
func TestTheZeroCmdSaysWhatOsExecDoes(t *testing.T) {
	type cmd interface {
		Start() error
		Wait() error
		Run() error
		Output() ([]byte, error)
		CombinedOutput() ([]byte, error)
	}
	for name, call := range map[string]func(c cmd) error{
		"Start":          cmd.Start,
		"Wait":           cmd.Wait,
		"Run":            cmd.Run,
		"Output":         func(c cmd) error { _, err := c.Output(); return err },
		"CombinedOutput": func(c cmd) error { _, err := c.CombinedOutput(); return err },
	} {
		want, got := call(&exec.Cmd{}), call(&sandbox.Cmd{})
		if want == nil || got == nil || !strings.HasPrefix(got.Error(), want.Error()) {
			t.Errorf("%s: %v, and not %v", name, got, want)
		}
	}
}
