package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// TestAnOwnDirectoryThatCannotBeMade is a StartError that says which directories would do.
func TestAnOwnDirectoryThatCannotBeMade(t *testing.T) {
	for _, where := range []string{"/proc", filepath.Join(t.TempDir(), "none")} {
		d := &ownDir{named: filepath.Join(where, "holdfast-X")}
		err := d.make(policy.Policy{}, nil, stage.Identity{UID: os.Geteuid(), GID: os.Getegid()})
		var e *StartError
		if !errors.As(err, &e) || !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "TMPDIR") || !strings.Contains(err.Error(), "--tmpfs /tmp") {
			t.Errorf("%s: %v", where, err)
		}
	}
}
