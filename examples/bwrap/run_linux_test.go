package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// beBwrap is the argv[0] as which this test binary is the program.
const beBwrap = "bwrap-under-test"

func TestMain(m *testing.M) {
	if os.Args[0] == beBwrap {
		os.Exit(mainStatus(os.Args))
	}
	kerneltest.Main(m, kerneltest.HasUserNamespaces)
}

// bwrap runs the program.
func bwrap(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = beBwrap
	return cmd
}

// all shows the host read-only, with devices that work.
var all = []string{"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}

func TestKernelRuns(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		script string
		stdin  string
		want   string
		says   string // on standard error
		status int
	}{
		{name: "its status is the command's", script: "exit 7", status: 7},
		{name: "its status tells of a signal", script: "kill -9 $$", status: 137},
		{name: "everything new", args: []string{"--unshare-all"}, script: "echo in", want: "in\n"},
		{name: "the environment, in order", args: []string{"--setenv", "A", "1", "--clearenv", "--setenv", "B", "2", "--setenv", "C", "3", "--unsetenv", "C"},
			script: "/usr/bin/env | grep -v -e ^PWD= -e ^_= -e ^SHLVL=", want: "B=2\n"},
		{name: "PATH as it is set", args: []string{"--setenv", "PATH", "/nowhere"}, status: 1, says: "bwrap: execvp sh: No such file or directory\n", script: "true"},
		{name: "argv0", args: []string{"--argv0", "other"}, script: "echo $0", want: "other\n"},
		{name: "a directory", args: []string{"--chdir", "/usr"}, script: "pwd; echo $PWD", want: "/usr\n/usr\n"},
		{name: "a directory that is not there", args: []string{"--chdir", "/none"}, script: "true", status: 1, says: "bwrap: Can't chdir to /none: No such file or directory\n"},
		{name: "a host name", args: []string{"--unshare-uts", "--hostname", "inside"}, script: "uname -n", want: "inside\n"},
		{name: "another user", args: []string{"--unshare-user", "--uid", "42", "--gid", "43"}, script: "id -u; id -g", want: "42\n43\n"},
		{name: "a file from standard input", args: []string{"--tmpfs", "/mnt", "--file", "0", "/mnt/f"}, stdin: "text", script: "cat /mnt/f; stat -c %a /mnt/f", want: "text666\n"},
		{name: "data", args: []string{"--tmpfs", "/mnt", "--perms", "0604", "--ro-bind-data", "0", "/mnt/f"}, stdin: "text", script: "cat /mnt/f; stat -c %a /mnt/f; echo 2>/dev/null >/mnt/f || echo refused", want: "text604\nrefused\n"},
		{name: "arguments from standard input", args: []string{"--tmpfs", "/mnt", "--args", "0"}, stdin: "--dir\x00/mnt/a\x00--dir\x00/mnt/b\x00ignored", script: "ls /mnt", want: "a\nb\n"},
		{name: "a source that is not there", args: []string{"--bind", "/none", "/mnt"}, script: "true", status: 1, says: "bwrap: Can't find source path /none: No such file or directory\n"},
		{name: "a conflicting link", args: []string{"--tmpfs", "/mnt", "--symlink", "a", "/mnt/l", "--symlink", "b", "/mnt/l"}, script: "true", status: 1, says: "bwrap: Can't make symlink at /mnt/l: existing destination is a\n"},
		{name: "a directory in what is read-only", args: []string{"--dir", "/usr/holdfast-none"}, script: "true", status: 1, says: "bwrap: Can't mkdir /usr/holdfast-none: Read-only file system\n"},
		{name: "a directory where a link leads nowhere", args: []string{"--tmpfs", "/mnt", "--symlink", "none", "/mnt/l", "--dir", "/mnt/l"}, script: "true", status: 1, says: "bwrap: Can't mkdir /mnt/l: No such file or directory\n"},
		{name: "a mode of nothing", args: []string{"--chmod", "0700", "/none"}, script: "true", status: 1, says: "bwrap: Can't chmod 0700 /none: No such file or directory\n"},
		{name: "a lock on nothing", args: []string{"--lock-file", "/none"}, script: "true", status: 1, says: "bwrap: Unable to lock file /none: No such file or directory\n"},
		{name: "user namespaces can be made", args: []string{"--assert-userns-disabled"}, script: "true", status: 1, says: "bwrap: creation of new user namespaces was not disabled as requested\n"},
		{name: "user namespaces cannot be made", args: []string{"--unshare-user", "--disable-userns"}, script: "unshare -U true 2>/dev/null || echo refused", want: "refused\n"},
		{name: "a warning with its level", args: []string{"--level-prefix", "--chdir", "/", "--chdir", "/"}, script: "true", says: "<4>bwrap: Only the last --chdir option will take effect\n"},
		{name: "no capabilities", args: []string{"--cap-drop", "ALL"}, script: "grep CapEff /proc/self/status", want: "CapEff:\t0000000000000000\n"},
		{name: "the machine's settings", script: "echo 0 2>/dev/null >/proc/sys/kernel/panic || echo refused", want: "refused\n"},
		{name: "as process 1", args: []string{"--unshare-pid", "--as-pid-1"}, script: "echo $$", want: "1\n"},
		{name: "a session of its own", args: []string{"--new-session", "--unshare-pid"}, script: "ps -o sid= -p 1 | tr -d ' '", want: "0\n"},
		{name: "a session that the command leads itself", args: []string{"--new-session"}, script: `exec setsid sh -c 'test "$(ps -o sid= -p $$ | tr -d " ")" = $$ && echo leader'`, want: "leader\n"},
		{name: "an empty filter", args: []string{"--seccomp", "0"}, script: "true", status: 1, says: "bwrap: Unable to set up system call filtering as requested: seccomp: Program: not a valid seccomp program: 0 instructions, not 1 to 4096\n"},
	}
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
					cmd := bwrap(slices.Concat(all, test.args, []string{"sh", "-c", test.script})...)
					var out, says bytes.Buffer
					cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(test.stdin), &out, &says
					cmd.Run()
					if out.String() != test.want || says.String() != test.says || cmd.ProcessState.ExitCode() != test.status {
						t.Errorf("status %d, output %q, says %q", cmd.ProcessState.ExitCode(), &out, &says)
					}
				})
			}
		})
	})
}

// TestKernelNests: a command builds a sandbox of its own.
func TestKernelNests(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			root := []string{"--bind", "/", "/", "--bind", "/proc", "/proc"}
			for _, outer := range [][]string{{"--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"}, {"--unshare-user"}} {
				inner := slices.Concat([]string{"--argv0", beBwrap, "/proc/self/exe", "--unshare-all"}, root, []string{"echo", "hello"})
				out, err := bwrap(slices.Concat(outer, root, inner)...).CombinedOutput()
				if err != nil || string(out) != "hello\n" {
					t.Errorf("%v: %v %s", outer, err, out)
				}
			}
		})
	})
}

// TestKernelBadInputMakesNothing: what is wrong is said before a directory of the
// host gets anything.
func TestKernelBadInputMakesNothing(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir := t.TempDir()
			for _, late := range [][]string{
				{"--nonsense"}, {"--bind", "/none", "/x"}, {"--file", "999", dir + "/x"}, {"--bind-data", "999", dir + "/x"}, {"--ro-bind-fd", "999", dir + "/x"},
				{"--perms", "9"}, {"--overlay-src", "/none", "--tmp-overlay", "/x"}, {"--seccomp", "999"}, {"--add-seccomp-fd", "999"}, {"--cap-add", "x"}, {"--userns", "999"}, {"--pidns", "999"},
				{"--hostname", strings.Repeat("x", 65), "--unshare-uts"}, {"--dir", strings.Repeat("x", 300)}, {"--proc", "/"},
			} {
				args := slices.Concat([]string{"--bind", "/", "/", "--dir", dir + "/made"}, late, []string{"true"})
				out, err := bwrap(args...).CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.HasPrefix(string(out), "bwrap: ") {
					t.Errorf("%v: %v %s", late, err, out)
				}
				if list, _ := os.ReadDir(dir); len(list) > 0 {
					t.Fatalf("%v: made %v", late, list)
				}
			}
		})
	})
}

// TestKernelTells reads what --info-fd and --json-status-fd get, and holds the
// command at --block-fd meanwhile.
func TestKernelTells(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			info, infoIn := pipe(t)
			status, statusIn := pipe(t)
			blockOut, block := pipe(t)
			args := slices.Concat([]string{"--unshare-all", "--info-fd", "3", "--json-status-fd", "4", "--block-fd", "5"}, all, []string{"sh", "-c", "readlink /proc/self/ns/pid /proc/self/ns/net; ls /proc/self/fd | wc -l; exit 3"})
			cmd := bwrap(args...)
			cmd.ExtraFiles = []*os.File{infoIn, statusIn, blockOut}
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			printed := func() string {
				text, _ := os.ReadFile(out.Name())
				return string(text)
			}
			cmd.Stdout, cmd.Stderr = out, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for _, f := range cmd.ExtraFiles {
				f.Close()
			}
			var first map[string]int
			if err := json.NewDecoder(info).Decode(&first); err != nil {
				t.Fatal(err)
			}
			if printed() != "" {
				t.Errorf("the command has run: %q", printed())
			}
			pid := first["child-pid"]
			if link, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); link != fmt.Sprintf("net:[%d]", first["net-namespace"]) {
				t.Errorf("%v, but process %d is in %q", first, pid, link)
			}
			block.Close()
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 3 {
				t.Error(code)
			}
			// ls itself opens a directory beside the three standard descriptors.
			if want := fmt.Sprintf("pid:[%d]\nnet:[%d]\n4\n", first["pid-namespace"], first["net-namespace"]); printed() != want {
				t.Errorf("%q, want %q", printed(), want)
			}
			var second, third map[string]int
			d := json.NewDecoder(status)
			if err := errors.Join(d.Decode(&second), d.Decode(&third)); err != nil || second["child-pid"] != pid || third["exit-code"] != 3 {
				t.Errorf("%v %v %v", second, third, err)
			}
		})
	})
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestKernelNothingOutlivesIt: neither a return nor a kill leaves a process.
func TestKernelNothingOutlivesIt(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, flags := range [][]string{nil, {"--unshare-pid"}, {"--unshare-pid", "--as-pid-1"}} {
				for _, kill := range []bool{false, true} {
					outlives(t, flags, kill)
				}
			}
		})
	})
}

// outlives runs a command that leaves a process with the writing end of a pipe:
// its end comes when that process is dead.
func outlives(t *testing.T, flags []string, kill bool) {
	r, w := pipe(t)
	script := "sleep 1000 & echo started; exit 4"
	if kill {
		script = "sleep 1000 & echo started; wait"
	}
	cmd := bwrap(slices.Concat(flags, all, []string{"--share-fd", "3", "sh", "-c", script})...)
	cmd.ExtraFiles = []*os.File{w}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	out.Read(make([]byte, 8))
	if kill {
		cmd.Process.Signal(syscall.SIGKILL)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); !kill && code != 4 {
		t.Errorf("%v: status %d", flags, code)
	}
	if !kill { // at once: it has returned
		p := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
		if n, _ := unix.Poll(p, 0); n != 1 || p[0].Revents&unix.POLLHUP == 0 {
			t.Errorf("%v: a process is alive", flags)
		}
		return
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%v: read %d, %v", flags, n, err)
	}
}

// TestKernelPassesSignalsOn: SIGTERM to it is one to the command.
func TestKernelPassesSignalsOn(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			cmd := bwrap(slices.Concat(all, []string{"--unshare-pid", "sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 1000 & wait; done"})...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out.Read(make([]byte, 8))
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 9 {
				t.Error(code)
			}
		})
	})
}

func TestKernelHelpAndVersion(t *testing.T) {
	out, err := bwrap("--help").Output()
	if err != nil || !strings.HasPrefix(string(out), "usage: "+beBwrap+" [OPTIONS...] [--] COMMAND [ARGS...]\n") || strings.Count(string(out), "\n    --") != len(table) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := bwrap("--version").Output(); err != nil || string(out) != version+"\n" {
		t.Errorf("%v %s", err, out)
	}
	for _, args := range [][]string{nil, {"--unshare-pid"}} {
		cmd := bwrap(args...)
		var says bytes.Buffer
		cmd.Stderr = &says
		if cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(says.String(), "usage: ") {
			t.Errorf("%v: %d %s", args, cmd.ProcessState.ExitCode(), &says)
		}
	}
}

// TestKernelSharesDirectoriesByDescriptor: what is open is shown, not its name.
func TestKernelSharesDirectoriesByDescriptor(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for option, want := range map[string]string{"--bind-fd": "text\nwritten", "--ro-bind-fd": "text\nrefused"} {
				cmd := bwrap(slices.Concat(all, []string{option, "3", "/mnt", "sh", "-c", "cat /mnt/file; echo; touch /mnt/new 2>/dev/null && echo written || echo refused"})...)
				cmd.ExtraFiles = []*os.File{f}
				out, err := cmd.CombinedOutput()
				if err != nil || strings.TrimSpace(string(out)) != want {
					t.Errorf("%s: %v %q", option, err, out)
				}
			}
		})
	})
}
