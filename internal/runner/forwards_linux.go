package runner

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// forwards are the listeners at the harness's loopback, by their ports inside.
type forwards struct {
	mu  sync.Mutex
	all map[uint16]netip.AddrPort
}

// mostForwarded bounds the connections of one Forward.
const mostForwarded = 64

// forwardPause follows a connection that could not be accepted.
const forwardPause = 100 * time.Millisecond

// forward serves one Forward until the network's end.
func (n *Network) forward(l *net.TCPListener, port uint16) error {
	defer context.AfterFunc(n.ctx, func() { l.Close() })()
	var serving sync.WaitGroup
	defer serving.Wait()
	room := make(chan struct{}, mostForwarded)
	for {
		room <- struct{}{}
		c, err := l.AcceptTCP()
		if err != nil {
			if n.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) { // descriptors are short, or the client has gone
				<-room
				time.Sleep(forwardPause)
				continue
			}
			return err
		}
		serving.Go(func() {
			defer func() { <-room }()
			n.join(c, port)
		})
	}
}

// join connects a client to a server inside.
func (n *Network) join(client *net.TCPConn, port uint16) {
	defer client.Close()
	inside, err := n.DialInside(n.ctx, port)
	if err != nil {
		client.SetLinger(0) // a reset, as of a port at which nothing listens
		return
	}
	defer inside.Close()
	defer context.AfterFunc(n.ctx, func() { client.Close(); inside.Close() })()
	up := make(chan struct{})
	go func() {
		defer close(up)
		io.Copy(inside, client)
		if w, is := inside.(interface{ CloseWrite() error }); !is || w.CloseWrite() != nil {
			inside.Close()
		}
	}()
	io.Copy(client, inside)
	client.CloseWrite()
	<-up
}
