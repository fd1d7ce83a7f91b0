package sandbox

import (
	"bufio"
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

// The tool that makes terminals in the sandbox up to the number in its argument, and prints at the end what was written to that one.
var _ = offer(programs, "terminal of a number", func(args []string) {
	number, _ := strconv.Atoi(args[0])
	for n := -1; n < number; {
		master, made, err := openTerminal()
		if err != nil || made > number {
			fmt.Println("terminal", made, err)
			return
		}
		if n = made; n < number {
			continue // it stays open, so that the next one has another number
		}
		other, err := os.OpenFile(otherEnd(n), os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer other.Close()
		fmt.Println("ready")
		os.Stdin.Read(make([]byte, 1))
		c := exec.Command("/bin/sh", "-c", "exec </dev/null; echo own >/dev/tty") // it has no descriptor of it
		c.Stdin, c.SysProcAttr = other, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if out, err := c.CombinedOutput(); err != nil {
			fmt.Printf("%s%v\n", out, err)
			return
		}
		text, b := "", make([]byte, 256)
		for !strings.HasSuffix(text, "own\r\n") {
			size, err := unix.Read(master, b)
			if err != nil {
				fmt.Println(err)
				return
			}
			text += string(b[:size])
		}
		fmt.Printf("%q\n", text)
	}
})

// TestKernelTheTerminalOfACommandIsNoOther: the number of a terminal that a session's command was given may be that of another one, which was
// made inside. /dev/tty is never that other one, whether the command has a descriptor of its terminal or has closed them all.
func TestKernelTheTerminalOfACommandIsNoOther(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasUserNamespaces, kerneltest.HasSeccompFilter)
	eachWall(t, []walls{sessionWalls[0], sharedPIDs}, func(t *testing.T, w walls) {
		base := t.TempDir()
		for _, d := range []string{"read", "write"} {
			if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		p := attackPolicy(t, base, w)
		p.Files.Protect.Off = false // the supervisor opens /dev/tty
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ours, tools := terminal(t)
		var stat unix.Stat_t
		if err := unix.Fstat(int(tools.Fd()), &stat); err != nil {
			t.Fatal(err)
		}
		number := unix.Minor(stat.Rdev)
		if number > 200 {
			t.Skipf("needs a machine with fewer than 200 terminals: %d", number)
		}
		inner := s.program("terminal of a number", strconv.Itoa(int(number)))
		in, err := inner.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := inner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		begin(t, inner)
		lines := bufio.NewScanner(out)
		if lines.Scan(); lines.Text() != "ready" {
			t.Fatalf("the terminal made inside: %q", lines.Text())
		}
		c := s.sh(`cut -d ' ' -f 7 /proc/$$/stat; (echo secret >/dev/tty) 2>/dev/null; exec </dev/null >/dev/null 2>&1; echo secret >/dev/tty; exit 0`)
		c.Stdin, c.Stdout, c.Stderr, c.SysProcAttr = tools, tools, tools, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := c.Run(); err != nil {
			t.Error(err)
		}
		if got, err := bufio.NewReader(ours).ReadString('\n'); got != fmt.Sprintf("%d\r\n", stat.Rdev) {
			t.Errorf("the number of its terminal is %q, %v; want %d", got, err, stat.Rdev)
		}
		in.Close()
		if lines.Scan(); lines.Text() != `"own\r\n"` {
			t.Errorf("the terminal made inside has got %s", lines.Text())
		}
		if err := inner.Wait(); err != nil {
			t.Error(err)
		}
	})
}
