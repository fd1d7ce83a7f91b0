package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"time"
)

// A secured carries the requests of one terminated connection to its server. It
// connects to that connection's target and to nothing else, whatever a request
// says, and verifies the target's name, with no way to leave that out. The first
// connection says which version of HTTP the server speaks.
type secured struct {
	g    *Gateway
	in   *inner
	one  *pool
	two  [2]*http.Transport // HTTP/2; the second one for HEAD alone, see sifted
	room chan struct{}      // of requests by HTTP/1

	mu     sync.Mutex
	agreed string // the version; "": no connection was made yet
	spare  *sealed
}

// mostInner bounds the connections to a server that one client's connection has:
// an HTTP/2 client may ask for many things at once of a server without it.
const mostInner = 16

const (
	h1 = "http/1.1"
	h2 = "h2"
)

func newSecured(g *Gateway, in *inner) *secured {
	s := &secured{g: g, in: in, room: make(chan struct{}, mostInner)}
	s.one = new(pool)
	for i := range s.two {
		s.two[i] = s.newTwo(i == 1)
	}
	return s
}

// newTwo makes what speaks HTTP/2. Connections are its dialler's, TLS and all, so that
// frames can be looked at before it reads them.
func (s *secured) newTwo(head bool) *http.Transport {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true) // as far as it can see
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := s.conn(ctx, h2)
			if err != nil {
				return nil, err
			}
			return newSifted(conn, head), nil
		},
		Protocols:              p,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 1 << 20}, // for a client that reads slowly
		DisableCompression:     true,
		MaxConnsPerHost:        mostInner,
		IdleConnTimeout:        idleWait,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: mostHead,
	}
}

// RoundTrip sends a request in the version that the server speaks. An upgrade is
// HTTP/1's.
func (s *secured) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return s.old(r)
	}
	two, err := s.settle(r.Context())
	if err == nil && two {
		head := 0
		if r.Method == http.MethodHead {
			head = 1
		}
		return s.two[head].RoundTrip(r)
	}
	if err == nil {
		select {
		case s.room <- struct{}{}:
		case <-r.Context().Done():
			err = r.Context().Err()
		}
	}
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	res, err := s.old(r)
	if err != nil {
		<-s.room
		return nil, err
	}
	res.Body = &seated{ReadCloser: res.Body, room: s.room}
	return res, nil
}

// old sends a request by HTTP/1.
func (s *secured) old(r *http.Request) (*http.Response, error) {
	res, _, err := s.one.ask(r.Context(), oldWay{s, r.Context()}, "", r, hints(r))
	return res, err
}

// An oldWay is where one request by HTTP/1 goes.
type oldWay struct {
	*secured
	ctx context.Context
}

func (w oldWay) reach(ctx context.Context) (net.Conn, string, error) {
	conn, err := w.conn(ctx, h1)
	if err != nil {
		return nil, "", err
	}
	return conn, conn.RemoteAddr().String(), nil
}

func (w oldWay) reached(u *upstream) {
	if t := httptrace.ContextClientTrace(w.ctx); t != nil && t.GotConn != nil {
		t.GotConn(httptrace.GotConnInfo{Conn: u.Conn, Reused: u.used})
	}
}

// A seated body leaves its room when it is closed.
type seated struct {
	io.ReadCloser
	room chan struct{}
	once sync.Once
}

// Close closes the body.
func (b *seated) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() { <-b.room })
	return err
}

// settle says whether the server speaks HTTP/2, and asks it if nobody has.
func (s *secured) settle(ctx context.Context) (two bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agreed == "" {
		if s.spare, err = s.dial(ctx, h2, h1); err != nil {
			return false, err
		}
		if s.agreed = s.spare.ConnectionState().NegotiatedProtocol; s.agreed == "" {
			s.agreed = h1
		}
	}
	return s.agreed == h2, nil
}

// conn returns the connection that settle has made, or makes another of a version.
func (s *secured) conn(ctx context.Context, version string) (*sealed, error) {
	s.mu.Lock()
	if s.agreed == version && s.spare != nil {
		defer s.mu.Unlock()
		conn := s.spare
		s.spare = nil
		return conn, nil
	}
	s.mu.Unlock()
	conn, err := s.dial(ctx, version)
	if err == nil && version == h2 && conn.ConnectionState().NegotiatedProtocol != h2 {
		conn.Close()
		return nil, errors.New("the server does not speak HTTP/2 any more")
	}
	return conn, err
}

// dial connects, and shakes hands. It takes the connection that the tunnel has made
// first.
func (s *secured) dial(ctx context.Context, versions ...string) (*sealed, error) {
	g := s.g
	if !g.enter() {
		return nil, ErrClosed
	}
	defer g.leave()
	conn := s.in.take()
	if conn == nil {
		var err error
		if conn, _, err = g.dial(ctx, s.in.target); err != nil {
			return nil, err
		}
	}
	below := &valve{Conn: &metered{Conn: conn, g: g}}
	c := &sealed{below: below, Conn: tls.Client(below, &tls.Config{
		ServerName: s.in.target.Host.String(), RootCAs: g.cfg.Roots, MinVersion: tls.VersionTLS12, NextProtos: versions,
	})}
	ctx, cancel := context.WithTimeout(ctx, headerTime)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// close closes what is idle.
func (s *secured) close() {
	s.mu.Lock()
	spare := s.spare
	s.spare = nil
	s.mu.Unlock()
	if spare != nil {
		spare.Close()
	}
	s.one.close()
	for _, t := range s.two {
		t.CloseIdleConnections()
	}
}

// A sealed connection is TLS to a server that was verified.
type sealed struct {
	*tls.Conn
	below *valve
}

// drained reports whether nothing of what was received waits to be decrypted.
func (s *sealed) drained() bool {
	s.below.shut = true
	defer func() { s.below.shut = false }()
	n, err := s.Conn.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

func (s *sealed) unwrap() net.Conn { return s.below.Conn }

// A valve that is shut lets nothing more be read, for the moment.
type valve struct {
	net.Conn
	shut bool
}

func (v *valve) Read(p []byte) (int, error) {
	if v.shut {
		return 0, os.ErrDeadlineExceeded
	}
	return v.Conn.Read(p)
}
