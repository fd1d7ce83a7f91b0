package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var _ = offer(programs, "read the controlling terminal", readControlling)

// readControlling makes itself the foreground of the terminal that it was not given, and reads what is typed there.
func readControlling([]string) {
	signal.Ignore(unix.SIGTTOU, unix.SIGTTIN)
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	err = errors.Join(unix.Setpgid(0, 0), unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpid()))
	fmt.Println("foreground:", err)
	b := make([]byte, 100)
	n, err := unix.Read(fd, b)
	fmt.Printf("read: %q, %v\n", b[:max(n, 0)], err)
}

// TestKernelAttackTheControllingTerminal: a harness at a shell gives a tool no terminal, and a process group of its own, by which it can kill it. The tool reads
// what the user types to the harness, and leaves the harness in the background. The child of this test leads the terminal's session.
func TestKernelAttackTheControllingTerminal(t *testing.T) {
	eachWall(t, append(allSets[:len(allSets):len(allSets)], unscoped...), func(t *testing.T, w walls) {
		ours, tools := terminal(t)
		if err := unix.IoctlSetInt(int(tools.Fd()), unix.TIOCSCTTY, 0); err != nil {
			t.Fatal(err)
		}
		signal.Ignore(unix.SIGTTOU, unix.SIGHUP)
		run := func(command *exec.Cmd) string {
			defer unix.IoctlSetPointerInt(int(tools.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
			out, err := command.StdoutPipe()
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			said := bufio.NewReader(out)
			first, _ := said.ReadString('\n')
			if first == "foreground: <nil>\n" {
				io.WriteString(ours, "password\n")
			}
			rest, _ := io.ReadAll(said)
			command.Wait()
			return first + string(rest)
		}
		group := &syscall.SysProcAttr{Setpgid: true}
		plain := hostileBare(t, "read the controlling terminal")
		plain.SysProcAttr = group
		if said := run(plain); said != "foreground: <nil>\nread: \"password\\n\", <nil>\n" {
			t.Fatalf("without a sandbox nothing is read, so that this test proves nothing: %s", said)
		}
		s := attackSandbox(t, attackPolicy(t, "", w), w)
		_, other := terminal(t)
		for name, with := range map[string]func(c *Cmd){"nothing": func(*Cmd) {}, "a group of its own": func(c *Cmd) { c.SysProcAttr = group }, "another terminal": func(c *Cmd) { c.Stdin = other }} {
			c := hostile(t, s, "read the controlling terminal")
			with(c)
			if said := run(c.Cmd); said != "refused: "+unix.ENXIO.Error()+"\n" {
				t.Errorf("ESCAPE: with %s: %s", name, said)
			}
		}
		session, err := s.Open(t.Context())
		if errors.Is(err, errors.ErrUnsupported) {
			return // it needs Landlock
		}
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		c := session.Command(os.Args[0])
		c.Args, c.Dir, c.SysProcAttr = []string{attackTool, "read the controlling terminal"}, "/", group
		if said := run(c.Cmd); said != "refused: "+unix.ENXIO.Error()+"\n" {
			t.Errorf("ESCAPE: in a session: %s", said)
		}
	})
}
