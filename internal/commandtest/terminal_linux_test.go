package commandtest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelTerminalCanBeOpenedAnew: a tool on a terminal can open it by the
// names that scripts know, for reading and writing, with and without the supervisor.
// A file of the host that it was given cannot be opened anew, since that would
// give it other rights than the descriptor has.
func TestKernelTerminalCanBeOpenedAnew(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir := t.TempDir()
			file, err := os.Create(filepath.Join(t.TempDir(), "file"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			for name, p := range map[string]sandbox.Policy{"a workspace": sandbox.Workspace(dir), "read-only": sandbox.ReadOnly(dir)} {
				s, err := sandbox.New(p)
				if err != nil {
					t.Fatal(err)
				}
				cmd := s.Command("bash", "-c", `for f in /dev/tty /dev/stdin /dev/stdout /dev/stderr; do echo "writes $f" >$f; exec 5<$f && echo "reads $f"; exec 5<>$f && echo "both $f"; done
stty size </dev/tty; cat /proc/self/fd/9 || echo refused; echo end`)
				cmd.Dir = dir
				cmd.ExtraFiles = []*os.File{file, file, file, file, file, file, file}
				terminal, err := pty.StartWithSize(cmd.Cmd, &pty.Winsize{Rows: 24, Cols: 80})
				if err != nil {
					t.Fatal(err)
				}
				data, _ := io.ReadAll(terminal) // ends with EIO
				terminal.Close()
				if err := cmd.Wait(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				for _, f := range []string{"/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr"} {
					for _, verb := range []string{"writes ", "reads ", "both "} {
						if !strings.Contains(string(data), verb+f+"\r\n") {
							t.Errorf("in %s: not %q", name, verb+f)
						}
					}
				}
				if !strings.Contains(string(data), "24 80\r\n") || !strings.Contains(string(data), "refused\r\nend") {
					t.Errorf("in %s it printed %q", name, data)
				}
			}
		})
	})
}

// TestKernelTerminalOnAnotherDescriptor: the controlling terminal may be on any descriptor or on
// none, and /dev/tty means it, as os/exec's child finds.
func TestKernelTerminalOnAnotherDescriptor(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		for _, without := range [][]kerneltest.Feature{nil, {kerneltest.Namespaces}} {
			kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
				dir := t.TempDir()
				p := sandbox.Workspace(dir)
				p.May = []sandbox.Bound{policy.BoundFiles, policy.BoundNetwork, policy.BoundProcesses}
				s, err := sandbox.New(p)
				if err != nil {
					t.Fatal(err)
				}
				for name, script := range map[string]string{
					"on descriptor 3": `echo seen >/dev/tty && read -r line </dev/tty && echo "read $line" >&3`,
					"on none":         `exec 3>&-; echo seen >/dev/tty && read -r line </dev/tty && echo "read $line" >/dev/tty`,
				} {
					terminal, tty, err := pty.Open()
					if err != nil {
						t.Fatal(err)
					}
					cmd := s.Command("bash", "-c", script)
					cmd.Dir = dir
					cmd.ExtraFiles = []*os.File{tty}
					cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
					terminal.WriteString("typed\n")
					out, err := cmd.CombinedOutput()
					tty.Close()
					data, _ := io.ReadAll(terminal) // ends with EIO
					terminal.Close()
					if err != nil || !strings.Contains(string(data), "seen\r\n") || !strings.Contains(string(data), "read typed\r\n") {
						t.Errorf("%s: %v, %q, and on the terminal %q", name, err, out, data)
					}
				}
			})
		}
	})
}
