package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

var _ = offer(programs, "session late server", func(args []string) {
	io.ReadFull(os.Stdin, make([]byte, 1))
	l, err := net.Listen("tcp", args[0])
	for err == nil {
		var c net.Conn
		if c, err = l.Accept(); err == nil {
			io.WriteString(c, "served")
			c.Close()
		}
	}
	println(err.Error())
	os.Exit(1)
})

// TestKernelWaitPortReturnsWhenAServerListens, and not before; with the session it ends, too.
func TestKernelWaitPortReturnsWhenAServerListens(t *testing.T) {
	listening(t, listenWalls, func(t *testing.T, s *Session, port uint16) {
		server := s.program("session late server", fmt.Sprint("127.0.0.1:", port))
		begin, err := server.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.WaitPort(over, port); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing listens") {
			t.Errorf("before it listens: %v", err)
		}
		begin.Write([]byte{1})
		if err := s.WaitPort(t.Context(), port); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitPort(over, port+1); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "listen at tcp 127.") || !strings.Contains(err.Error(), fmt.Sprint(":", port, ":")) {
			t.Errorf("another port than that of the server: %v", err)
		}
		c, err := s.DialInside(t.Context(), port)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := io.ReadAll(c); string(out) != "served" || err != nil {
			t.Errorf("%q, %v", out, err)
		}
		c.Close()
		var not *PolicyError
		if _, err := s.DialInside(t.Context(), 22); !errors.As(err, &not) {
			t.Errorf("a port that the policy does not name: %v", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.WaitPort(t.Context(), 8081) }()
		s.Close()
		var gone *policy.SessionError
		if err := <-ended; !errors.As(err, &gone) {
			t.Errorf("after Close: %v", err)
		}
	})
}
