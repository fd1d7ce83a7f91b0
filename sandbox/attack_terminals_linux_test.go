package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
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

// reachesTerminal is onTerminal for a command that the terminal itself refuses,
// by EINVAL or ENOTTY, once no filter has: it is no console, and has no line
// discipline of that number.
func reachesTerminal(command uintptr) func(ground) error {
	return func(f ground) error {
		err := onTerminal(command)(f)
		if errors.Is(err, unix.ENOTTY) {
			return nil
		}
		return reached(err, unix.EINVAL)
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
	{name: "paste into the console", unheld: []string{noProfile}, try: reachesTerminal(console)},
	{name: "paste into the console with a bit above the command", unheld: []string{noProfile}, try: reachesTerminal(console | 1<<33)},
	{name: "set a line discipline", unheld: []string{noProfile}, try: reachesTerminal(setLine)},
	{name: "open the harness's other terminal by its number", never: "what arrives there decides: see TestKernelAttackTerminals", try: func(ground) error {
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
	{name: "open the system's console", bare: true, try: func(ground) error { return open("/dev/console", unix.O_RDWR|unix.O_NOCTTY) }},
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
		plain := exec.Command("/proc/self/exe")
		plain.Args = []string{attackTool, "terminals", base, strconv.Itoa(actNamed(t, "terminals", "open the harness's other terminal by its number"))}
		if out, err := plain.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if heard := make([]byte, len("ESCAPE")); !readsAll(other, heard) || string(heard) != "ESCAPE" {
			t.Errorf("without walls %q arrives at the other terminal", heard)
		}
		s := attackSandbox(t, attackPolicy(t, base, w), w)
		if !s.ready.Plan.Namespaces.Mount {
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
			unheld := slices.Contains(a.unheld, w.name)
			if succeeded := got == "succeeded"; succeeded != (a.works != unheld) && !(unheld && a.isLacking(got)) {
				t.Errorf("ESCAPE or loss: %s: %q, without this wall: %v", a.name, got, unheld)
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

func readsAll(r io.Reader, b []byte) bool {
	_, err := io.ReadFull(r, b)
	return err == nil
}
