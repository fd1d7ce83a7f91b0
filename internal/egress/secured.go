package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
)

// A secured carries the requests of one terminated connection to its server. It
// connects to that connection's target and to nothing else, whatever a request
// says, and verifies the target's name, with no way to leave that out.
type secured struct {
	g   *Gateway
	in  *inner
	one *pool

	ctx    context.Context // ends with the client's connection
	cancel context.CancelFunc
}

// h1 is HTTP/1.1 in ALPN (RFC 7301).
const h1 = "http/1.1"

func newSecured(g *Gateway, in *inner) *secured {
	s := &secured{g: g, in: in}
	s.ctx, s.cancel = context.WithCancel(g.ctx)
	s.one = new(pool)
	return s
}

// RoundTrip sends a request.
func (s *secured) RoundTrip(r *http.Request) (*http.Response, error) {
	res, _, err := s.one.ask(r.Context(), oldWay{s, r.Context()}, "", r, hints(r))
	return res, err
}

// An oldWay is where one request by HTTP/1 goes.
type oldWay struct {
	*secured
	ctx context.Context
}

func (w oldWay) reach(ctx context.Context) (net.Conn, string, error) {
	conn, err := w.dial(ctx)
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

// dial connects, and shakes hands. It takes the connection that the tunnel has made
// first.
func (s *secured) dial(ctx context.Context) (*sealed, error) {
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
	below := &valve{Conn: newMetered(conn, g)}
	c := &sealed{below: below, Conn: tls.Client(below, &tls.Config{
		ServerName: s.in.target.Host.String(), RootCAs: g.cfg.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{h1},
	})}
	ctx, cancel := context.WithTimeout(ctx, headerTime)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		conn.Close()
		if strings.HasSuffix(err.Error(), "no application protocol") { // alert 120 (RFC 7301, 3.2), whose type crypto/tls keeps to itself
			err = fmt.Errorf("the server does not speak HTTP/1.1, the one protocol that is spoken where the policy has TLS ended: %w", err)
		}
		return nil, err
	}
	return c, nil
}

// close closes what is idle.
func (s *secured) close() {
	s.cancel()
	s.one.close()
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
