package commandtest

import (
	"errors"
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
