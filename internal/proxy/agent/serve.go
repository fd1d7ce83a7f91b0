package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// mostConnections is how many connections of the tool are served at once, each with one to the agent; further ones are closed.
const mostConnections = 64

// Serve answers the connections of a listener inside with a filter, [SSH] or [GPG] with its options, each with another connection to the
// real agent, which dial makes. It ends when the listener is closed: it closes every connection, waits for their filters, and returns nil.
// Another error of the listener is returned then, but for a lack of descriptors or epoll watches, at which it waits.
func Serve(l net.Listener, dial func() (net.Conn, error), filter func(inside, outside io.ReadWriter) error) error {
	ctx, end := context.WithCancel(context.Background())
	room := make(chan struct{}, mostConnections)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	for {
		inside, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if t := interface{ Temporary() bool }(nil); errors.Is(err, syscall.ENOSPC) || errors.As(err, &t) && t.Temporary() { // see package proxy's Accept
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		select {
		case room <- struct{}{}:
		default:
			inside.Close()
			continue
		}
		running.Go(func() {
			defer func() { <-room }()
			defer closeWith(ctx, inside)()
			outside, err := dial()
			if err != nil {
				return
			}
			defer closeWith(ctx, outside)()
			_ = filter(inside, outside) // it has told of what it refused; what is left is the end of a connection
		})
	}
}

// closeWith has a connection closed when ctx ends, or earlier by the function that it returns.
func closeWith(ctx context.Context, c net.Conn) func() {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return func() {
		stop()
		c.Close()
	}
}
