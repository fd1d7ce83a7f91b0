package agent

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
)

func TestServingEndsWithItsListenerAndClosesWhatIsOpen(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	done, asked := make(chan error, 1), make(chan bool)
	deaf := func() (net.Conn, error) { // an agent that never answers
		outside, real := net.Pipe()
		go func() {
			readSSH(real)
			asked <- true
		}()
		return outside, nil
	}
	go func() {
		done <- Serve(l, deaf, func(inside, outside io.ReadWriter) error { return SSH(inside, outside, nobody) })
	}()
	tool, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	writeSSH(tool, []byte{sshRequestIdentities})
	<-asked
	l.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := readSSH(tool); !errors.Is(err, io.EOF) {
		t.Errorf("the tool's connection is still there: %v", err)
	}
}

func TestNoMoreConnectionsAreServedThanThereIsRoomFor(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go Serve(l, func() (net.Conn, error) { c, _ := net.Pipe(); return c, nil }, func(inside, outside io.ReadWriter) error { return SSH(inside, outside, nobody) })
	for range mostConnections {
		c, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := readSSH(c); !errors.Is(err, io.EOF) {
		t.Errorf("it is not closed: %v", err)
	}
}

// TestServingOutlastsALack of what a tool can use up, and ends at what will not pass.
func TestServingOutlastsALack(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served, done := make(chan bool), make(chan error, 1)
	dial := func() (net.Conn, error) {
		served <- true
		return nil, io.EOF
	}
	lacks := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC}
	go func() { done <- Serve(&fixture.LackingListener{Listener: l, Errs: lacks}, dial, nil) }()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	select {
	case <-served:
	case err := <-done:
		t.Fatal(err)
	}
	if err := Serve(&fixture.LackingListener{Listener: l, Errs: []error{syscall.EINVAL}}, dial, nil); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}
