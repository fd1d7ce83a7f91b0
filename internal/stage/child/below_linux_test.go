package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A family is a process and one below it, whose name in /proc looks like the fields that follow it.
type family struct {
	parent *exec.Cmd
	child  int
	said   *bufio.Reader
}

func newFamily(t *testing.T) (f family) {
	t.Helper()
	f.parent = exec.Command("/bin/sh", "-c", `/bin/sh -c 'printf ") S 1 (" >/proc/$$/comm; trap "echo alive" TERM; echo $$; read x <&3' & wait; echo ended; read x <&3`)
	out, err := f.parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f.parent.ExtraFiles = []*os.File{r}
	err = f.parent.Start()
	r.Close()
	t.Cleanup(func() { w.Close(); f.parent.Wait() }) // both read their end
	if err != nil {
		t.Fatal(err)
	}
	f.said = bufio.NewReader(out)
	if _, err := fmt.Fscanln(f.said, &f.child); err != nil {
		t.Fatal(err)
	}
	return f
}

// says fails the test unless that is the next line of either.
func (f family) says(t *testing.T, want string) {
	t.Helper()
	if line, err := f.said.ReadString('\n'); line != want+"\n" {
		t.Errorf("%q, %v; want %q", line, err, want)
	}
}

func TestWhatIsBelowAProcessIsKilledAndNothingElse(t *testing.T) {
	one, other := newFamily(t), newFamily(t)
	killBelow(atCwd, uintptr(one.parent.Process.Pid))
	one.says(t, "ended")
	syscall.Kill(other.child, syscall.SIGTERM)
	other.says(t, "alive") // it has no SIGKILL, which comes first
	one, other = newFamily(t), newFamily(t)
	killBelow(atCwd, 0)
	for _, f := range []family{one, other} {
		f.parent.Wait()
		if status := f.parent.ProcessState.String(); status != "signal: killed" {
			t.Error(status)
		}
	}
}
