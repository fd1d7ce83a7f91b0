package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// h1 is HTTP/1.1 in ALPN (RFC 7301).
const h1 = "http/1.1"

// maxChain is bytes of a server's certificates, which crypto/tls keeps for as long as a connection lasts, parsed, whether or not the leaf
// needs them. It takes a message of 256 KiB; a leaf of a thousand names has some 30.
const maxChain = 64 << 10

var errChain = errors.New("the server's certificates are longer than 64 KiB")

// An originTransport sends requests to servers by HTTP/1.1. It keeps connections by host and port (idleconns.go);
// each was dialled to an address that was checked for these. SetRules closes those that new rules do not allow.
//
// http.Transport takes three goroutines for a request, and does not say what it has read beyond a response.
type originTransport struct {
	dial func(context.Context) (*originConn, error)
	idle idleConns
}

// RoundTrip sends a request. If a kept connection ends before the first byte of a response, the request is
// sent once more, on another, where it may be repeated.
func (t *originTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if c := t.idle.take(r.URL.Host); c != nil {
		res, err := c.exchange(r)
		if !errors.Is(err, errUnanswered) || !mayRepeat(r) {
			return res, err
		}
	}
	c, err := t.dial(r.Context())
	if err != nil {
		if hasBody(r) {
			r.Body.Close()
		}
		return nil, cmp.Or(context.Cause(r.Context()), err)
	}
	c.pool, c.host = &t.idle, r.URL.Host
	return c.exchange(r)
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
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(bytes.Join(raw, nil)) > maxChain {
				return errChain
			}
			return nil
		},
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
