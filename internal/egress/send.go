package egress

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// A sending is a request with a body on its way: the server may answer before it
// has read all of it. The nil one was sent before the response was waited for.
type sending struct {
	done   chan struct{}
	err    error
	unable bool // err is the body's, not the connection's
}

const (
	sendBuffer = 16 << 10
	sentWait   = 50 * time.Millisecond // for a body that the server has read, and its sender not noticed
)

// send writes a request, or begins to.
func (u *upstream) send(r *http.Request) (*sending, error) {
	if bodiless(r) {
		w := writerTo(u.Conn)
		defer writers.Put(w)
		if err := r.Write(w); err != nil {
			return nil, err
		}
		return nil, w.Flush()
	}
	out := *r // shares the trailer, which is filled in as the body is read
	if out.Header.Get("Expect") != "" {
		// Nobody waits for the server: the client is told to go on when its body is read.
		out.Header = out.Header.Clone()
		out.Header.Del("Expect")
	}
	s := &sending{done: make(chan struct{})}
	go func() {
		to := &outward{Conn: u.Conn}
		w := bufio.NewWriterSize(to, sendBuffer)
		if s.err = out.Write(w); s.err == nil {
			s.err = w.Flush()
		}
		s.unable = s.err != nil && to.err == nil
		close(s.done)
		if s.unable { // else a response may still come
			u.Close()
		}
	}()
	return s, nil
}

// fault returns what was wrong with a body.
func (s *sending) fault() error {
	if s == nil {
		return nil
	}
	select {
	case <-s.done:
		if s.unable {
			return s.err
		}
	default:
	}
	return nil
}

// whole reports whether the request was sent to its end.
func (s *sending) whole() bool {
	if s == nil {
		return true
	}
	late := time.After(sentWait)
	select {
	case <-s.done:
		return s.err == nil
	case <-late:
		return false
	}
}

// An outward connection keeps the error of its last write.
type outward struct {
	net.Conn
	err error
}

func (o *outward) Write(p []byte) (n int, err error) {
	n, err = o.Conn.Write(p)
	if err != nil {
		o.err = err
	}
	return n, err
}

// A taken connection has switched protocols: it is its response's body.
type taken struct {
	*upstream
	stop func() bool
}

// Read returns what was read with the response first.
func (t *taken) Read(p []byte) (int, error) { return t.in.Read(p) }

// Close closes the connection.
func (t *taken) Close() error {
	t.stop()
	return t.upstream.Close()
}
