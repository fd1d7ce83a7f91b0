package agent

import (
	"errors"
	"io"
	"net"
	"sync"
)

// mostConnections is how many connections of the tool are served at once, each with
// one to the agent; further ones are closed.
const mostConnections = 64

// Serve answers the connections of a listener inside with a filter, [SSH] or [GPG]
// with its options, each with another connection to the real agent, which dial
// makes. It ends when the listener is closed: it closes every connection, waits for
// their filters, and returns nil. Another error of the listener is returned then.
func Serve(l net.Listener, dial func() (net.Conn, error), filter func(inside, outside io.ReadWriter) error) error {
	s := &server{open: map[net.Conn]struct{}{}}
	room := make(chan struct{}, mostConnections)
	defer s.end()
	for {
		inside, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
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
		s.add(inside)
		s.running.Go(func() {
			defer func() { <-room }()
			defer s.remove(inside)
			outside, err := dial()
			if err != nil || !s.add(outside) {
				return
			}
			defer s.remove(outside)
			_ = filter(inside, outside) // it has told of what it refused; what is left is the end of a connection
		})
	}
}

// A server keeps what is open, so that it can be closed.
type server struct {
	mu      sync.Mutex
	open    map[net.Conn]struct{}
	ended   bool
	running sync.WaitGroup
}

// add keeps a connection, or closes it when all has ended.
func (s *server) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		c.Close()
		return false
	}
	s.open[c] = struct{}{}
	return true
}

func (s *server) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	c.Close()
}

func (s *server) end() {
	s.mu.Lock()
	s.ended = true
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}
