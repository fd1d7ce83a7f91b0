package capture

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
)

// oneClient is a listener with one client, after which it is closed.
type oneClient struct {
	net.Listener
	conn net.Conn
}

func (l *oneClient) Accept() (c net.Conn, err error) {
	if c, l.conn = l.conn, nil; c == nil {
		err = net.ErrClosed
	}
	return c, err
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
	one := &oneClient{conn: inside}
	l := &fixture.LackingListener{Listener: one, Errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.ENOMEM}}
	n.listen(l)
	if n.serving.Wait(); len(l.Errs) > 0 || one.conn != nil {
		t.Errorf("it has ended before: %v, and the client is %v", l.Errs, one.conn)
	}
	over, end := context.WithCancel(t.Context())
	end()
	n = &netstack{ctx: over}
	n.listen(&fixture.LackingListener{Errs: []error{syscall.EMFILE}})
}
