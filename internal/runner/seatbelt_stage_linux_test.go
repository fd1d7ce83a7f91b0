package runner

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/rlimit"
)

// The stage for macOS sets limits and executes: a Linux kernel does that as well.
func init() {
	if os.Args[0] == darwin.StageWord {
		runStage(os.Args)
	}
}

// inStage runs a stage, and returns what its program printed and the stage said.
func inStage(t *testing.T, limits []rlimit.Setting, argv []string) (string, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	cmd := exec.Cmd{Path: exe, Args: darwin.StageArgs(3, limits, argv), ExtraFiles: []*os.File{w}, Stdout: &out, Stderr: &out, Env: []string{"PATH=/usr/bin:/bin"}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	said, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	return out.String(), stageError(said)
}

// fakeSandboxExec takes sandbox-exec's options and executes what follows them.
const fakeSandboxExec = `#!/bin/sh
while [ "$1" != -- ]; do printf '<%s>' "$1"; shift; done
shift
exec "$@"
`

func TestTheStageSetsLimitsAndLeavesNoDescriptor(t *testing.T) {
	fake := filepath.Join(t.TempDir(), "sandbox-exec")
	if err := os.WriteFile(fake, []byte(fakeSandboxExec), 0o755); err != nil {
		t.Fatal(err)
	}
	e := emit.Emission{Profile: "(version 1)\n(deny default)", Params: []emit.Param{{Name: "PATH0", Value: "/a b\n\"c\""}}}
	argv := darwin.ProfileArgs(fake, e, "/bin/sh", []string{"-c", `echo; ulimit -n; ulimit -Hn; ulimit -c; [ -e /proc/self/fd/3 ] && echo leaked; echo "$0|$1"`, "a b", ""})
	out, err := inStage(t, []rlimit.Setting{{Resource: rlimit.Core}, {Resource: rlimit.NoFile, Soft: 50, Hard: 60}}, argv)
	if want := "<-p><(version 1)\n(deny default)><-D><PATH0=/a b\n\"c\">\n50\n60\n0\na b|\n"; out != want || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

func TestTheStageSaysWhatFails(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits []rlimit.Setting
		argv   string
		step   string
		errno  syscall.Errno
	}{
		{"there is no sandbox-exec", nil, "/nonexistent/sandbox-exec", "execute /nonexistent/sandbox-exec", syscall.ENOENT},
		{"there is no such limit", []rlimit.Setting{{Resource: rlimit.SigPending, Soft: 1, Hard: 1}}, "/bin/echo", "limit sigpending 1", syscall.ENOSYS},
		{"the limit makes no sense", []rlimit.Setting{{Resource: rlimit.NoFile, Soft: 20, Hard: 10}}, "/bin/echo", "limit nofile 20:10", syscall.EINVAL},
	} {
		out, err := inStage(t, test.limits, []string{test.argv})
		var start *StartError
		if !errors.As(err, &start) || start.Step != test.step || !errors.Is(err, test.errno) || out != "" {
			t.Errorf("%s: %v, %q", test.name, err, out)
		}
	}
	if err := stageError([]byte("{")); err == nil || !strings.Contains(err.Error(), "{") {
		t.Errorf("half a message: %v", err)
	}
}
