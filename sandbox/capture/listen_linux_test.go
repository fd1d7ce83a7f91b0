package capture

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
)

// A lackingListener fails as net's do where the process may open no more files, or the user watch none; then it has one client.
type lackingListener struct {
	net.Listener
	errs  []error
	conns []net.Conn
}

func (l *lackingListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
	}
	if len(l.conns) == 0 {
		return nil, net.ErrClosed
	}
	c := l.conns[0]
	l.conns = nil
	return c, nil
}

// TestTheNameServerOutlastsALack of what tools of other runs use up, and ends with its listener.
func TestTheNameServerOutlastsALack(t *testing.T) {
	n := &netstack{ctx: t.Context(), resolver: &resolver{}}
	client, inside := net.Pipe()
	defer client.Close()
	go func() {
		client.Write([]byte{0xff, 0xff}) // a question of a length that there is not, after which the stream is closed
		io.Copy(io.Discard, client)
	}()
	l := &lackingListener{errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.ENOMEM}, conns: []net.Conn{inside}}
	n.listen(l)
	if n.serving.Wait(); len(l.errs)+len(l.conns) > 0 {
		t.Errorf("it has ended before: %v, and %d clients wait", l.errs, len(l.conns))
	}
	over, end := context.WithCancel(t.Context())
	end()
	n = &netstack{ctx: over}
	n.listen(&lackingListener{errs: []error{syscall.EMFILE}})
}
