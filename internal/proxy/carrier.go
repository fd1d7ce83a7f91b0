package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

const (
	mostIdle = 128 // connections to servers of plain HTTP that are kept
	idleWait = 30 * time.Second
)

// h1 is HTTP/1.1 in ALPN (RFC 7301).
const h1 = "http/1.1"

// A carrier sends the requests of exchanges by HTTP/1.1. Its connections are kept by host and port;
// each was dialled to an address that was checked for these, and the rules do not change.
type carrier struct{ *http.Transport }

// newTransport makes a transport whose connections dial makes.
func newTransport(dial func(context.Context) (*originConn, error)) *http.Transport {
	made := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := dial(ctx)
		if err != nil {
			return nil, &madeError{err}
		}
		return c, nil
	}
	return &http.Transport{
		DialContext:            made,
		DialTLSContext:         made,
		Protocols:              onlyHTTP1(),
		DisableCompression:     true,
		MaxIdleConns:           mostIdle,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        idleWait,
		ReadBufferSize:         readBuffer,
		MaxResponseHeaderBytes: 2 * mostHead,
	}
}

// errBody is a request whose body is malformed, or not whole.
var errBody = errors.New("the request's body is malformed, or breaks off")

// A madeError is why no connection was made.
type madeError struct{ error }

func (e *madeError) Unwrap() error { return e.error }

// RoundTrip sends a request.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r.Context())
	var on atomic.Pointer[originConn] // PutIdleConn is called by another goroutine
	var turn atomic.Uint64
	trace := &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			conn := i.Conn.(*originConn)
			turn.Store(conn.begin())
			on.Store(conn)
			x.event.Address = conn.place
		},
		PutIdleConn: func(error) { on.Load().idle(turn.Load()) },
	}
	ctx := httptrace.WithClientTrace(r.Context(), trace)
	trace.Got1xxResponse = nil // ReverseProxy's, which would pass them on
	res, err := c.Transport.RoundTrip(r.WithContext(ctx))
	if err == nil {
		x.heads += on.Load().answered(turn.Load(), res)
	}
	switch {
	case err == nil:
		return res, nil
	case context.Cause(r.Context()) != nil:
		return nil, context.Cause(r.Context())
	case x.broken.Load():
		return nil, errBody
	}
	return nil, withoutQuotes(err)
}

// dialPlain connects to the target of the exchange that needs a connection, or takes the one that
// its tunnel has made.
func (g *Gateway) dialPlain(ctx context.Context) (*originConn, error) {
	x := exchangeOf(ctx)
	conn, to, err := g.reachInner(ctx, x.c.inner, x.target)
	if err != nil {
		return nil, err
	}
	return newOrigin(newMetered(conn, g), to, &g.heads), nil
}

// reachInner takes the connection that a tunnel has made, or makes another.
func (g *Gateway) reachInner(ctx context.Context, u *Upstream, t Target) (net.Conn, string, error) {
	if u != nil {
		if conn := u.take(); conn != nil {
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

// dialTLS connects to the target of a terminated connection and to nothing else, whatever a request
// says, and verifies the target's name, with no way to leave that out.
func (g *Gateway) dialTLS(ctx context.Context, u *Upstream) (*originConn, error) {
	conn, to, err := g.reachInner(ctx, u, u.Target)
	if err != nil {
		return nil, err
	}
	c := tls.Client(newMetered(conn, g), &tls.Config{
		ServerName: u.Target.Host.String(), RootCAs: g.cfg.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{h1},
	})
	ctx, cancel := context.WithTimeout(ctx, headerTime)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		conn.Close()
		if strings.HasSuffix(err.Error(), "no application protocol") { // alert 120 (RFC 7301, 3.2), whose type crypto/tls keeps to itself
			err = fmt.Errorf("the server does not speak HTTP/1.1, the one protocol that is spoken where the policy has TLS ended: %w", err)
		}
		return nil, err
	}
	return newOrigin(c, to, &g.heads), nil
}
