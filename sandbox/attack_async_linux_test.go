package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var _ = offer(programs, "signal by input", signalByInput)

// signalByInput has the kernel signal the foreground group of the terminal that is its input when there is some (O_ASYNC of fcntl(2)), and waits for that.
func signalByInput(args []string) {
	signal.Ignore(unix.SIGUSR2)
	for _, flags := range []uintptr{unix.O_NONBLOCK, 0} { // what programs ask for works
		if err := rawCall(unix.SYS_FCNTL, 0, unix.F_SETFL, flags); err != nil {
			fmt.Println("F_SETFL:", err)
		}
	}
	if err := rawCall(unix.SYS_FCNTL, 0, unix.F_SETSIG, uintptr(unix.SIGUSR2)); err != nil {
		fmt.Println("F_SETSIG:", err)
	}
	var err error
	on := int32(1)
	if args[0] == "fcntl" {
		err = rawCall(unix.SYS_FCNTL, 0, unix.F_SETFL, high|unix.O_ASYNC)
	} else {
		err = rawCall(unix.SYS_IOCTL, 0, high|0x5452, pointerTo(&on)) // FIOASYNC
	}
	fmt.Println("tried:", err)
	os.Stdin.Read(make([]byte, 10))
}

// TestKernelAttackASignalByInput: a tool that is given a terminal, as by a harness at a shell, has what the user types signal all that is in the foreground, the
// harness among it, by a signal of the tool's choice. The child of this test leads the terminal's session.
func TestKernelAttackASignalByInput(t *testing.T) {
	eachWall(t, append(allSets[:len(allSets):len(allSets)], unscoped...), func(t *testing.T, w walls) {
		ours, tools := terminal(t)
		if err := unix.IoctlSetInt(int(tools.Fd()), unix.TIOCSCTTY, 0); err != nil {
			t.Fatal(err)
		}
		signal.Notify(make(chan os.Signal, 1), unix.SIGUSR2, unix.SIGHUP)
		for _, way := range []string{"fcntl", "ioctl"} {
			if err := typeAt(t, ours, hostileBare(t, "signal by input", way), tools.Name()); err == nil {
				t.Errorf("%s: without a sandbox nothing is signalled, so that this test proves nothing", way)
			}
			c := hostile(t, attackSandbox(t, attackPolicy(t, "", w), w), "signal by input", way)
			if err := typeAt(t, ours, c.Cmd, tools.Name()); err != nil {
				t.Errorf("ESCAPE: %s: a process of the harness's group: %v", way, err)
			}
		}
	})
}

// typeAt runs a command with a terminal, on which a line is typed once it says so, and returns how a process of the harness's group ended.
func typeAt(t *testing.T, ours io.Writer, command *exec.Cmd, terminal string) error {
	t.Helper()
	tools, err := os.OpenFile(terminal, os.O_RDWR|unix.O_NOCTTY, 0) // anew: who is signalled is said of a file that is open
	if err != nil {
		t.Fatal(err)
	}
	defer tools.Close()
	command.Stdin = tools
	return beside(t, func() {
		out, err := command.StdoutPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "tried:") {
			t.Errorf("the tool: %q, %v", line, err)
		}
		io.WriteString(ours, "x\n")
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
}
