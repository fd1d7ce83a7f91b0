package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

// asProgram in the environment makes the test binary the program under test.
const asProgram = "RUN_IS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Unsetenv(asProgram)
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a command that runs this example in a new workspace.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "RUN_TEST_TOKEN=secret")
	cmd.Dir = t.TempDir()
	return cmd
}

func TestEnding(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name           string
		args           []string
		status         int
		signal         syscall.Signal
		stdout, stderr string // part of it
	}{
		{"the tool's output", []string{"--", "echo", "hello"}, 0, 0, "hello\n", ""},
		{"an access that the policy refuses", []string{"-allows", "write /etc/hosts"}, 1, 0, "refused: ", ""},
		{"an access that it allows", []string{"-allows", "write ./new"}, 0, 0, "allowed: Files.Write", ""},
		{"an unknown operation", []string{"-allows", "wirte /etc/hosts"}, 1, 0, "to allow it: use one of read,", ""},
		{"a host that is allowed", []string{"-host", "*.example.org:443", "-allows", "connect a.example.org:443"}, 0, 0, "allowed: Network.Hosts[0]", ""},
		{"another host", []string{"-host", "*.example.org:443", "-allows", "connect example.com:443"}, 1, 0, "refused: ", ""},
		{"a host's variables", []string{"-host", "example.org", "--", "sh", "-c", "echo $https_proxy"}, 0, 0, "http://127.0.0.1:3128", ""},
		{"a host that is none", []string{"-host", "https://example.org/", "--", "true"}, statusSandbox, 0, "", "Network.Hosts[0]"},
		{"an address without a port", []string{"-allows", "connect example.org"}, statusSandbox, 0, "", "'connect example.org:443'"},
		{"a port that is no number", []string{"-allows", "connect example.org:http"}, statusSandbox, 0, "", "'connect example.org:443'"},
		{"an access without a path", []string{"-allows", "nonsense"}, statusSandbox, 0, "", "'write /etc/hosts'"},
		{"an operation that needs no path", []string{"-allows", "fork"}, 0, 0, "allowed: ", ""},
		{"the tool's status", []string{"--", "sh", "-c", "exit 42"}, 42, 0, "", ""},
		{"a status that is also this program's", []string{"--", "sh", "-c", "exit 125"}, 125, 0, "", ""},
		{"death by SIGTERM", []string{"--", "sh", "-c", "kill -TERM $$"}, -1, syscall.SIGTERM, "", ""},
		{"death by SIGKILL", []string{"--", "sh", "-c", "kill -KILL $$"}, -1, syscall.SIGKILL, "", ""},
		{"death by a signal that Go handles", []string{"--", "sh", "-c", "kill -SEGV $$"}, -1, syscall.SIGSEGV, "", ""},
		{"the time is up", []string{"-timeout", "200ms", "--", "sleep", "1000"}, statusTimeout, 0, "", "deadline was reached"},
		{"a tool that does not exist", []string{"--", "no-such-tool"}, statusNotFound, 0, "", "not found"},
		{"a path that does not exist", []string{"--", "/usr/bin/no-such-tool"}, statusNotFound, 0, "", "no such file"},
		{"a file that is no program", []string{"-read", plain, "--", plain}, statusNoExec, 0, "", "permission denied"},
		{"a directory", []string{"--", "/usr"}, statusNoExec, 0, "", "permission denied"},
		{"a tool that is not shown", []string{"--", plain}, statusSandbox, 0, "", "does not show the tool"},
		{"a rule that cannot hold", []string{"-read", "/no/such/path", "--", "true"}, statusSandbox, 0, "", "/no/such/path"},
		{"an unknown preset", []string{"-preset", "none", "--", "true"}, statusSandbox, 0, "", "unconfined"},
		{"an unknown flag", []string{"-no-such-flag", "--", "true"}, statusSandbox, 0, "", "Usage"},
		{"a bound that there is none of", []string{"-may", "file", "--", "true"}, statusSandbox, 0, "", "May"},
		{"bounds that may be weaker", []string{"-may", "container", "-may", "network", "--", "true"}, 0, 0, "", ""},
		{"no tool", []string{"-report"}, statusSandbox, 0, "", "no tool"},
		{"a bound that would not hold", []string{"-preset", "unconfined", "-hide", "/usr", "--", "true"}, statusSandbox, 0, "", "bound nothing"},
		{"help", []string{"-h"}, 0, 0, "", "-workspace"},
		{"the report", []string{"-report", "--", "true"}, 0, 0, "", "privileges"},
		{"the plan", []string{"-explain"}, 0, 0, "no_new_privs", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := program(t, test.args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			e := endingOf(cmd.ProcessState)
			if test.signal == 0 && e != (ending{status: test.status}) || test.signal != 0 && e.signal != test.signal {
				t.Errorf("it ended as %v", cmd.ProcessState)
			}
			if !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("it printed %q and %q", &stdout, &stderr)
			}
		})
	}
}

func TestFlagsReachThePolicy(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("content\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	read, extend := []string{"--", "cat", file}, []string{"--", "sh", "-c", `echo more >>"$0" && echo written`, file}
	for _, test := range []struct {
		name  string
		flags []string
		tool  []string
		works bool
	}{
		{"a file outside cannot be read", nil, read, false},
		{"with -read it can", []string{"-read", dir}, read, true},
		{"with -read it cannot be written", []string{"-read", dir}, extend, false},
		{"with -write it can", []string{"-write", dir}, extend, true},
		{"with -hide it cannot be read", []string{"-read", dir, "-hide", file}, read, false},
		{"as the workspace it can be written", []string{"-workspace", dir}, extend, true},
		{"with -preset readonly it cannot", []string{"-workspace", dir, "-preset", "readonly"}, extend, false},
		{"with -preset unconfined it can", []string{"-preset", "unconfined"}, extend, true},
		{"a secret variable does not pass", nil, []string{"--", "printenv", "RUN_TEST_TOKEN"}, false},
		{"with -env it does", []string{"-env", "RUN_TEST_TOKEN"}, []string{"--", "printenv", "RUN_TEST_TOKEN"}, true},
		{"with -env and a value it is set", []string{"-env", "OTHER=value"}, []string{"--", "sh", "-c", `[ "$OTHER" = value ]`}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := program(t, append(test.flags, test.tool...)...).CombinedOutput()
			if (err == nil) != test.works {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestItStartsInTheWorkspace(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	workspace := t.TempDir()
	if err := os.Mkdir(filepath.Join(workspace, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, here, want string }{
		{"from elsewhere", t.TempDir(), workspace},
		{"from inside", filepath.Join(workspace, "sub"), filepath.Join(workspace, "sub")},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := program(t, "-workspace", workspace, "--", "pwd")
			cmd.Dir = test.here
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != test.want+"\n" {
				t.Errorf("%v: %s; want %s", err, out, test.want)
			}
		})
	}
}

func TestInputAndSignalsReachTheTool(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	cmd := program(t, "--", "sh", "-c", `trap 'echo trapped; exit 7' TERM; read line; echo "$line"; sleep 1000 & wait`)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("ready\n")); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := stdout.Read(line); err != nil || string(line) != "ready\n" {
		t.Fatalf("%v: %q", err, line)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	n, err := stdout.Read(line)
	if err != nil || !strings.HasPrefix("trapped\n", string(line[:n])) {
		t.Errorf("%v: %q", err, line[:n])
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("it ended as %v", cmd.ProcessState)
	}
}

// TestIgnoredSignalsStayIgnored, as under nohup: the tool goes on, and a tool that such a signal does end is no success.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	ignoring := func(script string) *exec.Cmd {
		cmd := program(t, "--", "sh", "-c", script)
		cmd.Args = append([]string{"sh", "-c", `trap "" HUP INT; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		return cmd
	}
	cmd := ignoring(`echo ready; read line; exit 7`)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := stdout.Read(line); err != nil || string(line) != "ready\n" {
		t.Fatalf("%v: %q", err, line)
	}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	stdin.Write([]byte("on\n"))
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("it ended as %v", cmd.ProcessState)
	}
	if exec.Command("env", "--default-signal=HUP", "true").Run() != nil {
		t.Skip("env has no --default-signal (coreutils 8.31)")
	}
	cmd = ignoring(`exec env --default-signal=HUP sh -c 'kill -HUP $$'`)
	if cmd.Run(); cmd.ProcessState.ExitCode() != 128+int(syscall.SIGHUP) {
		t.Errorf("of a tool that SIGHUP has ended, where SIGHUP is ignored: %v", cmd.ProcessState)
	}
}
