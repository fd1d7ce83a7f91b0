package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

var workspace string

var tools = sync.OnceValues(func() (*sandbox.Sandbox, error) {
	p := sandbox.Workspace(workspace)
	p.Limits.WallClock = 10 * time.Minute
	return sandbox.New(p)
})

func bash(ctx context.Context, script string) (string, error) {
	s, err := tools()
	if err != nil {
		return "", err
	}
	cmd := s.CommandContext(ctx, "bash", "-c", script)
	out, err := cmd.CombinedOutput()
	text := string(out)
	for _, v := range cmd.Report().Violations {
		text += "\n[sandbox] " + v.String()
	}
	return text, err
}

// The bash tool of an agent: docs/harnesses.md has this function.
func ExampleSandbox_bash() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	workspace = dir
	out, err := bash(context.Background(), "echo text >file; cat file; exit 3")
	exit := (*exec.ExitError)(nil)
	fmt.Print(out, errors.As(err, &exit), " ", exit.ExitCode(), "\n")
	// Output:
	// text
	// true 3
}
