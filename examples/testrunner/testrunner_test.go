package testrunner

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

func TestSubmissions(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	if testing.Short() {
		t.Skip("builds a program: needs a run without -short")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs go: ", err)
	}
	secret, server := plant(t)
	for _, test := range []struct {
		name, verdict string
		limit         time.Duration
	}{
		{"right", "accepted", time.Minute},
		{"wrong", "wrong answer", time.Minute},
		{"endless", "out of time", 2 * time.Second},
		{"greedy", "crashed", time.Minute},           // it asks for more memory than there is
		{"flooding", "out of time", 2 * time.Second}, // it prints without end
		{"curious", "accepted", time.Minute},         // it looks around first, and finds nothing
		{"missing", "does not build", time.Minute},   // it was not handed in
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := grade(t, test.name, test.limit, secret, server); got != test.verdict {
				t.Errorf("the verdict is %q, want %q", got, test.verdict)
			}
		})
	}
}

// grade compiles and runs one submission and judges it.
func grade(t *testing.T, name string, limit time.Duration, arg ...string) (verdict string) {
	dir := t.TempDir()
	program, ok := compile(t, dir, name)
	if !ok {
		return "does not build"
	}
	s := sandboxtest.New(t, sandbox.Policy{
		Files: sandbox.Files{Read: []string{dir}},
		Limits: sandbox.Limits{
			WallClock: limit,
			Rlimits:   rlimit.Limits{CPU: rlimit.At(5), AS: rlimit.At(2 << 30), NProc: rlimit.At(300)},
		},
	})
	cmd := s.Command(program, arg...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader("2 3\n")
	got := sandboxtest.Run(t, cmd)
	switch {
	case errors.Is(got.Err, sandbox.ErrDeadline):
		return "out of time"
	case got.Err != nil:
		t.Logf("%v: %.200s", got.Err, got.Stderr)
		return "crashed"
	case got.Stdout != "5\n":
		t.Logf("it printed %.200q", got.Stdout)
		return "wrong answer"
	}
	return "accepted"
}

// compile builds a submission in dir. The compiler may write there, and nothing
// else.
func compile(t *testing.T, dir, name string) (program string, ok bool) {
	source, err := os.ReadFile(filepath.Join("testdata", name, "main.go"))
	if err != nil {
		t.Log(err)
		return "", false
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "main.go"), source, 0o644),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module submission\n\ngo 1.21\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	p := sandbox.Workspace(dir)
	p.Limits.WallClock = 5 * time.Minute // with an empty build cache
	p.Env.Set["CGO_ENABLED"] = "0"       // a static program needs no files but itself
	p.Env.Set["GOFLAGS"] = ""
	cmd := sandboxtest.New(t, p).CommandContext(t.Context(), "go", "build", "-o", "program")
	cmd.Dir = dir
	if got := sandboxtest.Run(t, cmd); got.Err != nil {
		t.Logf("%v: %s", got.Err, got.Stderr)
		return "", false
	}
	return filepath.Join(dir, "program"), true
}

// plant makes what a submission must not reach: a file that everybody can read,
// and a server.
func plant(t *testing.T) (file, address string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "solutions")
	if err := os.WriteFile(file, []byte("5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return file, l.Addr().String()
}
