package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// An act is what a tool does in the default sandbox of a new workspace, and whether that must work. Whether it did is looked at
// from outside, where something is left to look at.
type act struct {
	name   string
	script string // of bash; its status is that of the act
	works  bool
	left   string // a path that exists afterwards if the act worked; "": its status alone counts
}

// selfTest tries the default sandbox and prints a report to paste into an issue. It reports whether all was as it must be.
func selfTest(w io.Writer) (bool, error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return false, err
	}
	base, err := os.MkdirTemp("", "doctor-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(base)
	ws, outside := filepath.Join(base, "workspace"), filepath.Join(base, "outside")
	for _, dir := range []string{filepath.Join(ws, ".git", "hooks"), outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, err
		}
	}
	for _, file := range []string{filepath.Join(ws, "given"), filepath.Join(outside, "secret")} {
		if err := os.WriteFile(file, []byte("content\n"), 0o600); err != nil {
			return false, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false, err
	}
	defer l.Close()
	home, err := os.UserHomeDir()
	if err != nil {
		home = outside
	}
	planted := filepath.Join(home, filepath.Base(base))
	s, err := sandbox.New(sandbox.Workspace(ws))
	if err != nil {
		return false, err
	}
	defer s.Close()

	fmt.Fprintf(w, "doctor -self-test: %s/%s, %s, user %d\n\n", runtime.GOOS, runtime.GOARCH, version(), os.Geteuid())
	good := true
	var last *sandbox.Report
	for _, a := range acts(ws, outside, planted, l.Addr().(*net.TCPAddr).Port) {
		did, cmd := attempt(s, bash, ws, a)
		verdict := "ok "
		if did != a.works {
			verdict, good = "BAD", false
		}
		fmt.Fprintf(w, "%s  %-8s %s\n", verdict, map[bool]string{true: "works", false: "refused"}[did], a.name)
		if did != a.works {
			fmt.Fprintf(w, "     it must be otherwise: %s\n", a.script)
		}
		last = cmd.Report()
	}
	os.Remove(planted) // there is one if the sandbox failed
	fmt.Fprintf(w, "\n%v", last)
	return good, nil
}

// acts are those that are tried.
func acts(ws, outside, planted string, port int) []act {
	quote := func(p string) string { return "'" + strings.ReplaceAll(p, "'", `'\''`) + "'" }
	secret := quote(filepath.Join(outside, "secret"))
	list := []act{
		{name: "a file of the workspace is read", script: "grep -q content given", works: true},
		{name: "a file is made in the workspace", script: "echo text >made", works: true, left: filepath.Join(ws, "made")},
		{name: "a directory is made, renamed and removed", script: "mkdir d && mv d e && rmdir e", works: true},
		{name: "a temporary file is made", script: `f=$(mktemp) && echo text >"$f" && rm "$f"`, works: true},
		{name: "a file is made in HOME", script: `echo text >"$HOME/x" && rm "$HOME/x"`, works: true},
		{name: "a pipe and a job in the background", script: "{ echo a & wait; } | grep -q a", works: true},
		{name: "the null device", script: "echo text >/dev/null", works: true},
		{name: "a file outside is read", script: "grep -q content " + secret},
		{name: "a file outside is written", script: "echo text >" + quote(filepath.Join(outside, "new")), left: filepath.Join(outside, "new")},
		{name: "a file outside is linked into the workspace", script: "ln " + secret + " linked && grep -q content linked", left: filepath.Join(ws, "linked")},
		{name: "a file outside is reached by a symbolic link", script: "ln -s " + secret + " symbolic; grep -q content symbolic"},
		{name: "a file is made in the user's home", script: "echo text >" + quote(planted), left: planted},
		{name: "a hook of git", script: "echo text >.git/hooks/pre-commit", left: filepath.Join(ws, ".git/hooks/pre-commit")},
		{name: "a hook of git, by a rename", script: "echo text >f && mv f .git/hooks/pre-commit", left: filepath.Join(ws, ".git/hooks/pre-commit")},
		{name: "a shell's startup file in the workspace", script: "echo text >.bashrc", left: filepath.Join(ws, ".bashrc")},
		{name: "a server on the loopback is reached", script: fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", port)},
		{name: "a host is reached", script: "exec 3<>/dev/tcp/192.0.2.1/80"},
	}
	if pid := os.Getpid(); pid > 1000 { // a number that no process inside has
		list = append(list, act{name: "the harness is signalled", script: fmt.Sprintf("kill -0 %d", pid)})
	}
	return list
}

// attempt reports whether an act worked.
func attempt(s *sandbox.Sandbox, bash, ws string, a act) (bool, *sandbox.Cmd) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // an act that hangs is refused, or BAD
	defer cancel()
	cmd := s.CommandContext(ctx, bash, "-c", a.script)
	cmd.Dir = ws
	err := cmd.Run()
	if a.left == "" {
		return err == nil, cmd
	}
	_, there := os.Lstat(a.left)
	if a.works {
		return err == nil && there == nil, cmd
	}
	return there == nil, cmd
}

// version is the kernel's, and on macOS the system's.
func version() string {
	if out, err := exec.Command("sw_vers", "-productVersion").Output(); err == nil {
		return "macOS " + strings.TrimSpace(string(out))
	}
	out, err := exec.Command("uname", "-sr").Output()
	if err != nil {
		return "version unknown"
	}
	return strings.TrimSpace(string(out))
}
