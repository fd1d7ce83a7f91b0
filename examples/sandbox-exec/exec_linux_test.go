package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// beSandboxExec is the argv[0] as which this test binary is the program.
const beSandboxExec = "sandbox-exec-under-test"

func TestMain(m *testing.M) {
	if os.Args[0] == beSandboxExec {
		os.Exit(mainStatus(os.Args, os.Stdout, os.Stderr))
	}
	kerneltest.Main(m, kerneltest.HasUserNamespaces)
}

// sandboxExec runs the program and returns its status and what it printed.
func sandboxExec(args ...string) (status int, out, errs string) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = beSandboxExec
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Run()
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

const writesWorkspace = `(version 1)
(allow default)
(deny file-write*)
(allow file-write* (subpath (param "WS")))
(deny network*)
`

func TestKernelRuns(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "agent.sb")
			if err := os.WriteFile(file, []byte(writesWorkspace), 0o644); err != nil {
				t.Fatal(err)
			}
			ws := filepath.Join(dir, "ws")
			if err := os.Mkdir(ws, 0o755); err != nil {
				t.Fatal(err)
			}
			beside := filepath.Join(dir, "beside")
			tests := []struct {
				name      string
				args      []string
				status    int
				out, errs string // parts of what is printed; "": nothing is
			}{
				{"its status is the command's", []string{"-p", "(version 1)(allow default)", "sh", "-c", "exit 7"}, 7, "", ""},
				{"its status tells of a signal", []string{"-p", "(version 1)(allow default)", "sh", "-c", "kill -9 $$"}, 137, "", ""},
				{"a file, a joined parameter and a double dash", []string{"-f", file, "-DWS=" + ws, "--", "sh", "-c", "echo a >" + ws + "/a && cat " + ws + "/a"}, 0, "a\n", ""},
				{"what the profile denies", []string{"-f", file, "-D", "WS=" + ws, "touch", beside}, 1, "", "Read-only file system"},
				{"options of the command", []string{"-p", "(version 1)(allow default)", "echo", "-n", "x", "--strict"}, 0, "x --strict", ""},
				{"a named profile", []string{"-n", "no-write", "touch", ws + "/b"}, 1, "", "Read-only file system"},
				{"a profile that allows nothing", []string{"-n", "pure-computation", "true"}, 71, "", "execvp() of 'true' failed: "},
				{"a name that is none", []string{"-n", "no-such", "true"}, 65, "", "profile not found"},
				{"a profile that is none", []string{"-p", "(version 1)\n(setenv 1)", "true"}, 65, "", "sandbox-exec: unbound variable: setenv at <input string>, line 2\n"},
				{"a file that is not there", []string{"-f", dir + "/none.sb", "true"}, 65, "", "no such file"},
				{"a file without end", []string{"-f", "/dev/zero", "true"}, 65, "", "bytes of text"},
				{"a command that is not there", []string{"-p", "(version 1)(allow default)", "/no/such"}, 71, "", "execvp() of '/no/such' failed: no such file or directory\n"},
				{"two profiles", []string{"-n", "no-write", "-p", "x", "true"}, 64, "", "usage: "},
				{"no command", []string{"-n", "no-write"}, 64, "", "no command"},
				{"an option that is none", []string{"-x", "true"}, 64, "", "illegal option -x"},
				{"a parameter without a value", []string{"-n", "no-write", "-D", "WS", "true"}, 64, "", "-D takes key=value"},
				{"strictly, what is held as it says", []string{"-f", file, "-D", "WS=" + ws, "--strict", "true"}, 0, "", ""},
				{"strictly, what is not", []string{"--strict", "-p", `(version 1)(allow default)(deny file-read* (regex #"/\.env$"))`, "true"}, 65, "", "Linux cannot hold (deny file-read* "},
				{"an explanation of what is allowed", []string{"-f", file, "-D", "WS=" + ws, "--explain", "file-write-create", ws + "/a"}, 0, "allow file-write-create", ""},
				{"an explanation of what is denied", []string{"-f", file, "-D", "WS=" + ws, "--explain", "file-write-create", beside}, 1, "agent.sb:3 (deny file-write*)", ""},
				{"the classes", []string{"-f", file, "-D", "WS=" + ws, "--classes"}, 0, "agent.sb:3 (deny file-write*): exact\n", ""},
			}
			for _, test := range tests {
				status, out, errs := sandboxExec(test.args...)
				if status != test.status || (test.out == "") != (out == "") || !strings.Contains(out, test.out) || (test.errs == "") != (errs == "") || !strings.Contains(errs, test.errs) {
					t.Errorf("%s: status %d, output %q, says %q", test.name, status, out, errs)
				}
			}
			if _, err := os.Stat(beside); err == nil {
				t.Error("it was written beside the workspace")
			}
		})
	})
}
