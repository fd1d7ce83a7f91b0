package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

const (
	maxIdleConns = 128 // connections to servers of plain HTTP that are kept
	idleWait     = 30 * time.Second
)

// h1 is HTTP/1.1 in ALPN (RFC 7301).
const h1 = "http/1.1"

// A tracedTransport sends requests by HTTP/1.1. Its connections are kept by host and port;
// each was dialled to an address that was checked for these, and the rules do not change.
type tracedTransport struct{ *http.Transport }

// newTransport makes a transport whose connections dial makes.
func newTransport(dial func(context.Context) (*originConn, error)) *http.Transport {
	made := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := dial(ctx)
		if err != nil {
			return nil, &dialError{err}
		}
		return c, nil
	}
	return &http.Transport{
		DialContext:            made,
		DialTLSContext:         made,
		Protocols:              onlyHTTP1(),
		DisableCompression:     true,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        idleWait,
		ReadBufferSize:         readBuffer,
		MaxResponseHeaderBytes: 2 * maxHeadBytes,
	}
}

// RoundTrip sends a request.
func (c tracedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := requestOf(r.Context())
	var on atomic.Pointer[originConn] // PutIdleConn is called by another goroutine
	var turn atomic.Uint64
	trace := &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			conn := i.Conn.(*originConn)
			turn.Store(conn.begin())
			on.Store(conn)
			x.event.Address = conn.address
		},
		PutIdleConn: func(error) { on.Load().idle(turn.Load()) },
	}
	ctx := httptrace.WithClientTrace(r.Context(), trace)
	trace.Got1xxResponse = nil // ReverseProxy's, which would pass them on
	res, err := c.Transport.RoundTrip(r.WithContext(ctx))
	for again := 0; again < maxClosedIdle && isClosedIdle(err) && (r.Body == nil || r.Body == http.NoBody); again++ {
		res, err = c.Transport.RoundTrip(r.WithContext(ctx))
	}
	if err == nil {
		x.heads += on.Load().gotResponse(turn.Load(), res)
	}
	switch {
	case err == nil:
		return res, nil
	case context.Cause(r.Context()) != nil:
		return nil, context.Cause(r.Context())
	case x.uploadBroken.Load():
		return nil, errBody
	}
	return nil, sanitizeError(err)
}

// maxClosedIdle is how many connections may turn out to have ended while they were kept before
// a request is given up.
const maxClosedIdle = 3

// isClosedIdle reports that a kept connection had ended before anything of the request was written to
// it: it may be made on another, whatever its method. http.Transport does that itself for methods that
// may be repeated, and does not export the error.
func isClosedIdle(err error) bool {
	return err != nil && err.Error() == "http: server closed idle connection"
}

// dialPlain connects to the target of the request that needs a connection, or takes the one that
// its tunnel has made.
func (g *Proxy) dialPlain(ctx context.Context) (*originConn, error) {
	x := requestOf(ctx)
	conn, to, err := g.dialServer(ctx, x.c.tunnel, x.target)
	if err != nil {
		return nil, err
	}
	metered := newMeteredConn(conn, g)
	return newOriginConn(metered, metered, to), nil
}

// dialServer takes the connection that a tunnel has made, or makes another.
func (g *Proxy) dialServer(ctx context.Context, u *Tunnel, t Target) (net.Conn, string, error) {
	if u != nil {
		if conn := u.takeServer(); conn != nil {
			return conn, address(u.Address), nil
		}
	}
	if !g.enter() {
		return nil, "", ErrClosed
	}
	defer g.leave()
	conn, to, err := g.dial(ctx, t)
	return conn, address(to), err
}

// dialTLS connects to the target of an intercepted connection and to nothing else, whatever a request
// says, and verifies the target's name, with no way to leave that out.
func (g *Proxy) dialTLS(ctx context.Context, u *Tunnel) (*originConn, error) {
	conn, to, err := g.dialServer(ctx, u, u.Target)
	if err != nil {
		return nil, err
	}
	metered := newMeteredConn(conn, g)
	c := tls.Client(metered, &tls.Config{
		ServerName: u.Target.Host.String(), RootCAs: g.cfg.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{h1},
	})
	ctx, cancel := context.WithTimeout(ctx, headerTimeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		metered.Close()
		if strings.HasSuffix(err.Error(), "no application protocol") { // alert 120 (RFC 7301, 3.2), whose type crypto/tls keeps to itself
			err = fmt.Errorf("the server does not speak HTTP/1.1, the one protocol that is spoken where the policy has TLS ended: %w", err)
		}
		return nil, err
	}
	return newOriginConn(c, metered, to), nil
}

// onlyHTTP1 is the one protocol that the proxy speaks itself.
func onlyHTTP1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}
