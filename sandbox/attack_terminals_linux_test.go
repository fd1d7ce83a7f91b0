package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// bareWalls are without namespaces, as plain Docker is, and as a host is that refuses them alone.
var bareWalls = []walls{
	{name: "without namespaces and calls into other processes", without: []kerneltest.Feature{kerneltest.Namespaces, kerneltest.ProcessCalls}, may: inContainer.may},
	allSets[3],
}

// openTerminal makes a terminal: its master, and its number.
func openTerminal() (int, int, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("ptmx: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return fd, -1, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	return fd, n, err
}

func otherEnd(n int) string { return "/dev/pts/" + strconv.Itoa(n) }

// The tool that has one terminal of its own and looks for those of the host, of which one has the number in its argument.
var _ = offer(programs, "terminals", func(args []string) {
	fail := func(what string, err error) { fmt.Println(what+":", err) }
	if err := ownTerminalWorks(); err != nil {
		fail("a terminal of its own", err)
	}
	host := "/dev/pts/" + args[0]
	if err := os.Symlink(host, "link"); err != nil {
		fail("symlink", err)
	}
	dir, err := unix.Open("/dev/pts", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		fail("O_PATH", err)
	}
	held, err := unix.Open(host, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		fail("O_PATH", err)
	}
	for _, p := range []string{host, "link", "/proc/self/root" + host, "/dev/pts/../pts/" + args[0], fmt.Sprintf("/proc/self/fd/%d/%s", dir, args[0]), fmt.Sprint("/proc/self/fd/", held)} {
		for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_RDWR | unix.O_CREAT, unix.O_RDONLY | unix.O_NONBLOCK, unix.O_WRONLY | unix.O_TRUNC} {
			if fd, err := unix.Open(p, flags|unix.O_NOCTTY, 0o600); err == nil {
				unix.Write(fd, []byte("ESCAPE"))
				fail("ESCAPE", fmt.Errorf("%s was opened with flags %#x", p, flags))
			}
		}
	}
	if fd, err := unix.Openat(dir, args[0], unix.O_RDWR|unix.O_NOCTTY, 0); err == nil {
		fail("ESCAPE", fmt.Errorf("opened by its directory: %d", fd))
	}
	if err := os.Chmod(host, 0o666); err == nil {
		fail("ESCAPE", errors.New("its mode was changed"))
	}
	if fd, err := unix.Open("/dev/ptmx", unix.O_RDONLY|unix.O_NOCTTY, 0); err == nil {
		fail("ESCAPE", fmt.Errorf("a terminal that the supervisor does not know: %d", fd))
	}
	if err := reusedTerminal(); err != nil {
		fail("ESCAPE", err)
	}
	if err := manyTerminals(); err != nil {
		fail("many", err)
	}
})

// ownTerminalWorks writes at one end of a terminal what comes out at the other, which is opened as openpty(3) does.
func ownTerminalWorks() error {
	master, n, err := openTerminal()
	if err != nil {
		return err
	}
	defer unix.Close(master)
	if fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY); errno == 0 {
		return fmt.Errorf("opened past the supervisor: %d", fd)
	}
	other, err := unix.Open(otherEnd(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &unix.Winsize{Row: 7, Col: 9}); err != nil {
		return err
	}
	if w, err := unix.IoctlGetWinsize(other, unix.TIOCGWINSZ); err != nil || w.Row != 7 || w.Col != 9 {
		return fmt.Errorf("its size: %+v, %v", w, err)
	}
	if _, err := unix.Write(master, []byte("line\n")); err != nil {
		return err
	}
	b := make([]byte, 16)
	if n, err := unix.Read(other, b); err != nil || string(b[:n]) != "line\n" {
		return fmt.Errorf("read %q, %w", b[:n], err)
	}
	for n = 0; n < len("line\r\n") && err == nil; { // it may come in pieces
		var more int
		more, err = unix.Read(master, b[n:])
		n += max(more, 0)
	}
	if err != nil || string(b[:n]) != "line\r\n" {
		return fmt.Errorf("its echo: %q, %v", b[:n], err)
	}
	// A process that it controls, and that has no descriptor of it.
	c := exec.Command("/bin/sh", "-c", "exec </dev/null; echo tty >/dev/tty")
	c.Stdin, c.SysProcAttr = os.NewFile(uintptr(other), "terminal"), &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("/dev/tty: %w: %s", err, out)
	}
	if n, err := unix.Read(master, b); err != nil || string(b[:n]) != "tty\r\n" {
		return fmt.Errorf("from /dev/tty: %q, %w", b[:n], err)
	}
	return nil
}

// reusedTerminal opens a terminal of its own by a name and a descriptor that it had before it ended, when the harness has made others.
func reusedTerminal() error {
	master, n, err := openTerminal()
	if err != nil {
		return err
	}
	held, err := unix.Open(otherEnd(n), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unix.Close(master)
	fmt.Println("number", n)
	os.Stdin.Read(make([]byte, 1))
	for _, p := range []string{otherEnd(n), fmt.Sprint("/proc/self/fd/", held)} {
		if _, err := unix.Open(p, unix.O_RDWR|unix.O_NOCTTY, 0); err == nil {
			return fmt.Errorf("%s was opened when it was another's", p)
		}
	}
	return nil
}

// manyTerminals makes as many as there can be, and others once these have ended.
func manyTerminals() error {
	for range 2 {
		var fds []int
		var err error
		for err == nil && len(fds) < 100 {
			var fd int
			if fd, _, err = openTerminal(); err == nil {
				fds = append(fds, fd)
			}
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
		if !errors.Is(err, unix.ENOSPC) || len(fds) == 0 {
			return fmt.Errorf("after %d: %v", len(fds), err)
		}
	}
	return nil
}

// barePolicy is a policy under which a tool works in a directory, which is not below a directory that cannot be private.
func barePolicy(t *testing.T, w walls) (Policy, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short: an address holds 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := attackPolicy(t, "", w)
	p.Files.Private, p.Files.Write, p.Files.Protect.Off = []string{"/var/tmp"}, []string{dir}, false
	return p, dir
}

// TestKernelAttackTheHostsTerminals: without namespaces a tool makes terminals in the host's devpts, and opens those alone: none of the harness's,
// by whatever path, nor one of the harness's that has the number of one that it had.
func TestKernelAttackTheHostsTerminals(t *testing.T) {
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		ours, tools := terminal(t)
		for name, change := range map[string]func(p *Policy){
			"no network":         func(p *Policy) {},
			"the host's network": func(p *Policy) { p.Network.Host = true },
		} {
			t.Run(name, func(t *testing.T) {
				p, dir := barePolicy(t, w)
				change(&p)
				c := hostile(t, attackSandbox(t, p, w), "terminals", filepath.Base(tools.Name()))
				c.Dir = dir
				if out := meetTool(t, c, "number", func(n int) { takeTerminal(t, n) }); out != "" {
					t.Errorf("%s\n%s", out, c.Report())
				}
			})
		}
		if _, err := unix.Write(int(ours.Fd()), []byte("the harness's\n")); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 64)
		if n, err := tools.Read(b); err != nil || string(b[:n]) != "the harness's\n" {
			t.Errorf("the harness's terminal: %q, %v", b[:n], err)
		}
	})
}

// takeTerminal makes terminals until one has this number, if it is free.
func takeTerminal(t *testing.T, number int) {
	for range 32 {
		fd, n, err := openTerminal()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { unix.Close(fd) })
		if n >= number {
			return
		}
	}
}

// TestKernelAToolsTerminalIsFoundAgain: without namespaces, what a tool was given as its standard input and output it opens by every path that
// leads there, and another terminal of the harness's by none.
func TestKernelAToolsTerminalIsFoundAgain(t *testing.T) {
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		_, other := terminal(t)
		ours, tools := terminal(t)
		p, dir := barePolicy(t, w)
		c := attackSandbox(t, p, w).Command("/bin/sh", "-c", `echo out >/dev/stdout; echo err >/dev/stderr; echo path >"$(tty)"; echo fd >/proc/self/fd/0
(echo ESCAPE >"$0") 2>&-; echo end`, other.Name())
		c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, tools, tools, tools
		if err := c.Run(); err != nil {
			t.Error(err)
		}
		b, text := make([]byte, 256), ""
		for !strings.Contains(text, "end\r\n") {
			n, err := unix.Read(int(ours.Fd()), b)
			if err != nil {
				t.Fatalf("%q, %v", text, err)
			}
			text += string(b[:n])
		}
		if text != "out\r\nerr\r\npath\r\nfd\r\nend\r\n" {
			t.Errorf("%q\n%s", text, c.Report())
		}
	})
}

// The tool that opens a terminal which is not there, over and over, to have it in the moment in which it comes to be.
var _ = offer(programs, "new terminal", func(args []string) {
	fmt.Println("number", 0)
	for input := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}; ; {
		if fd, err := unix.Open("/dev/pts/"+args[0], unix.O_RDWR|unix.O_CREAT|unix.O_NOCTTY, 0o600); err == nil {
			fmt.Println("ESCAPE: descriptor", fd)
			return
		}
		if n, _ := unix.Poll(input, 0); n != 0 {
			return
		}
	}
})

// TestKernelAttackATerminalThatComesToBe: a name that is not there when the supervisor looks is not opened when it is the harness's a moment later.
func TestKernelAttackATerminalThatComesToBe(t *testing.T) {
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		master, number, err := openTerminal()
		if err != nil {
			t.Skipf("needs /dev/ptmx: %v", err)
		}
		unix.Close(master)
		p, dir := barePolicy(t, w)
		c := hostile(t, attackSandbox(t, p, w), "new terminal", strconv.Itoa(number))
		c.Dir = dir
		out := meetTool(t, c, "number", func(int) {
			for range 3000 {
				if master, _, err := openTerminal(); err != nil {
					t.Error(err)
				} else {
					unix.Close(master)
				}
			}
		})
		if out != "" {
			t.Errorf("%s\n%s", out, c.Report())
		}
	})
}
