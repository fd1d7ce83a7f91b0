package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// A harness that is killed in a pause.
var _ = offer(programs, "paused harness", func(args []string) {
	p := Workspace(os.TempDir())
	p.Files = Files{Read: []string{"/usr", "/bin", "/lib", "/lib64"}, Private: []string{"/tmp"}}
	for _, b := range strings.Fields(args[0]) {
		p.May = append(p.May, Bound(b))
	}
	s, err := New(p)
	if err != nil {
		panic(err)
	}
	session, err := s.Open(context.Background())
	if err != nil {
		panic(err)
	}
	for range 3 {
		c := session.Command("/bin/sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo started; exec sleep 2000")
		out, err := c.StdoutPipe()
		if err != nil {
			panic(err)
		}
		if err := c.Start(); err != nil {
			panic(err)
		}
		out.Read(make([]byte, 1))
	}
	if err := session.Pause(); err != nil {
		panic(err)
	}
	fmt.Println("paused")
	select {}
})

// TestKernelAPausedSessionEndsWithItsHarness: no process, file or mount is left when the harness is killed in a pause.
func TestKernelAPausedSessionEndsWithItsHarness(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		adoptOrphans(t)
		before, _ := os.ReadFile("/proc/self/mountinfo")
		dir := t.TempDir()
		c, lines := startHarness(t, dir, "paused harness", strings.Join(boundNames(w.may), " "))
		for lines.Scan() && lines.Text() != "paused" {
		}
		if c.Process.Kill(); lines.Text() != "paused" || c.Wait() == nil {
			t.Fatalf("the harness ended by itself: %v", lines.Err())
		}
		reapAll(t, "a pause")
		if list, err := os.ReadDir(dir); len(list) > 0 || err != nil {
			t.Errorf("%v is left, %v", list, err)
		}
		if now, _ := os.ReadFile("/proc/self/mountinfo"); string(now) != string(before) {
			t.Errorf("mounts are left: %s", now)
		}
	})
}

// A server that says at which port it serves; a client that connects until one is refused, and counts.
var _ = offer(programs, "pause server", func([]string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	for {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "served")
			c.Close()
		}
	}
})

var _ = offer(programs, "pause client", func(args []string) {
	for n := 1; ; n++ {
		c, err := net.Dial("tcp", args[0])
		text := []byte(nil)
		if err == nil {
			text, err = io.ReadAll(c)
			c.Close()
		}
		if err != nil || string(text) != "served" {
			fmt.Printf("connection %d: %q, %v\n", n, text, err)
			os.Exit(1)
		}
		if err := os.WriteFile(args[1], fmt.Append(nil, n), 0o600); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
})

// TestKernelCommandsMeetAcrossPauses: what wardens share of their tools' sockets is whole after each.
func TestKernelCommandsMeetAcrossPauses(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		p, dir := barePolicy(t, w)
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		for i := range 2 {
			server := s.program("pause server")
			out, err := server.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			begin(t, server)
			line := make([]byte, 64)
			n, err := out.Read(line)
			if err != nil {
				t.Fatal(err)
			}
			for j := range 2 {
				c := s.program("pause client", strings.TrimSpace(string(line[:n])), filepath.Join(dir, fmt.Sprint(i, j)))
				said := new(strings.Builder)
				c.Stdout = said
				t.Cleanup(func() {
					if c.Wait(); t.Failed() {
						t.Log(said)
					}
				})
				begin(t, c)
			}
		}
		held := map[string][]byte{}
		for range kerneltest.Amount(t, 1, 2, 3) {
			for i := range 2 {
				for j := range 2 {
					name := filepath.Join(dir, fmt.Sprint(i, j))
					held[name] = awaitChange(t, name, held[name])
				}
			}
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // a client that was refused has written for the last time
			for name := range held {
				held[name] = awaitChange(t, name, held[name])
			}
		}
	})
}

// TestKernelACommandsTimeEndsInAPause: Limits.WallClock goes on.
func TestKernelACommandsTimeEndsInAPause(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		p := attackPolicy(t, "", w)
		var c *Cmd
		var s *Session
		for limit := 500 * time.Millisecond; c == nil; limit *= 4 {
			p.Limits.WallClock = limit
			var err error
			if s, err = attackSandbox(t, p, w).Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			c = s.sh("exec sleep 1000")
			if err = c.Start(); err != nil && limit > time.Minute {
				t.Fatal(err)
			} else if err != nil { // the machine is slow, and has other work
				c = nil
			}
		}
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); !errors.Is(err, ErrDeadline) {
			t.Errorf("the command's end: %v", err)
		}
		if err := s.Resume(); err != nil {
			t.Error(err)
		}
	})
}
