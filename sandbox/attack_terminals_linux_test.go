package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

var _ = offer(attacks, "terminals", terminalActs)

// onTerminal returns an act on the controlling terminal by a raw ioctl, whose
// command has bits that the kernel ignores.
func onTerminal(command uintptr) func(ground) error {
	return func(ground) error {
		fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("no terminal: %w", err)
		}
		defer unix.Close(fd)
		key := []byte("x\x00\x00\x00")
		return rawCall(unix.SYS_IOCTL, uintptr(fd), command, uintptr(unsafe.Pointer(&key[0])))
	}
}

const (
	stuff   = 0x5412 // TIOCSTI
	console = 0x541c // TIOCLINUX
	setLine = 0x5423 // TIOCSETD
)

var terminalActs = []act{
	{name: "use the terminal", works: true, try: func(ground) error {
		_, err := unix.IoctlGetTermios(0, unix.TCGETS)
		return err
	}},
	{name: "open the terminal by its general name", works: true, try: func(ground) error { return open("/dev/tty", unix.O_RDWR) }},
	{name: "make a terminal", works: true, unheld: []string{noNamespaces}, try: func(ground) error {
		m, s, err := pty.Open()
		if err != nil {
			return err
		}
		defer m.Close()
		defer s.Close()
		if _, err := s.Write([]byte("x")); err != nil {
			return err
		}
		_, err = m.Read(make([]byte, 1))
		return err
	}},
	{name: "type into the terminal", unheld: []string{noProfile}, try: onTerminal(stuff)},
	{name: "type into the terminal with a bit above the command", unheld: []string{noProfile}, try: onTerminal(stuff | 1<<32)},
	{name: "type into the terminal with the highest bit", unheld: []string{noProfile}, try: onTerminal(stuff | 1<<63)},
	{name: "paste into the console", try: onTerminal(console)},
	{name: "paste into the console with a bit above the command", try: onTerminal(console | 1<<33)},
	{name: "set a line discipline", unheld: []string{noProfile}, try: onTerminal(setLine)},
	{name: "open the harness's other terminal by its number", try: func(ground) error {
		name := os.Getenv("ATTACK_PTS")
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		if _, err := unix.Write(fd, []byte("ESCAPE")); err != nil {
			return err
		}
		return errors.New("one of one's own") // the test looks at what arrives
	}},
	{name: "open the system's console", try: func(ground) error { return open("/dev/console", unix.O_RDWR|unix.O_NOCTTY) }},
}

func TestKernelAttackTerminals(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		other, slave, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		t.Setenv("ATTACK_PTS", slave.Name())
		t.Setenv("HARNESS", "1")
		base := makeGrounds(t, len(terminalActs))
		s := attackSandbox(t, attackPolicy(t, base, w), w)
		if !s.plan.Namespaces.Mount {
			w.name = noNamespaces
		}
		c := hostile(t, s, "terminals", base, "all")
		var said bytes.Buffer
		c.Stdout = &said
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		c.Stdin = tty
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		err = c.Run()
		tty.Close()
		if err != nil {
			t.Fatalf("%v\n%s", err, said.Bytes())
		}
		outcomes := parseOutcomes(said.String())
		for i, a := range terminalActs {
			got := outcomes[i]
			excused := false
			for _, u := range a.unheld {
				excused = excused || u == w.name
			}
			if succeeded := got == "succeeded"; succeeded != a.works && !excused {
				t.Errorf("ESCAPE or loss: %s: %q", a.name, got)
			}
			t.Logf("%s: %s", a.name, got)
		}
		slave.Close()
		seen, _ := io.ReadAll(other) // ends: nobody holds the slave
		if strings.Contains(string(seen), "ESCAPE") {
			t.Error("ESCAPE: the tool wrote to another terminal")
		}
	})
}
