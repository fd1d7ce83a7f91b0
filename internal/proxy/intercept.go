package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// setupInterception prepares the interception of TLS, where the Config has credentials or
// request rules. The secrets leave the Config.
func (g *Proxy) setupInterception() (err error) {
	if g.credentials, err = compileCredentials(g.cfg.Credentials, g.cfg.Scope); err != nil {
		return err
	}
	if g.requests, err = compileRequests(g.cfg.Requests); err != nil {
		return err
	}
	if g.compiled = g.cfg.Compiled; g.compiled == nil {
		if g.compiled, err = Compile(g.cfg); err != nil {
			return err
		}
	}
	if g.compiled.authority == nil && len(g.credentials)+len(g.requests) > 0 {
		return errors.New("the Compiled was made from another Config, without credentials and request rules")
	}
	if g.compiled.roots != nil {
		g.cfg.Roots = g.compiled.roots
	}
	g.rules.Store(&g.compiled.rules)
	g.cfg.Credentials = nil
	g.redactor = g.credentials.redactor()
	g.judgeRequest = g.checkRequest
	return nil
}

// Bundle returns the certificates that a client inside should trust, in PEM: the
// system's roots, the policy's and the sandbox's own authority. Nil: the system's will do.
func (g *Proxy) Bundle() []byte { return bytes.Clone(g.compiled.bundle) }

// Store returns the same certificates as a JVM's trust store, with the password
// clientenv.StorePassword. Nil: no TLS is intercepted.
func (g *Proxy) Store() ([]byte, error) {
	if len(g.compiled.bundle) == 0 {
		return nil, nil
	}
	return g.compiled.store()
}

// Placeholders returns what stands in the tool's environment for each
// credential: variable to placeholder.
func (g *Proxy) Placeholders() map[string]string { return g.credentials.placeholders() }

// Redact puts placeholders where a text has a secret, in the encodings in which servers
// give them back too.
func (g *Proxy) Redact(s string) string { return g.redactor.Text(s) }

// checkRequest judges a request by the rules of its host, and by the placeholders
// that it has.
func (g *Proxy) checkRequest(r *http.Request, t Target) error {
	if t.own != nil { // no secret, and no rule, is for it
		return nil
	}
	if no := g.requests.judge(r, t.Host, t.Port, g.credentials.of(t.Host, t.Port).headers()...); no != nil {
		return no
	}
	if g.hasRequestRule(t) {
		r.Trailer = nil // it comes after the judgement, and some servers make headers of it
	}
	if no := g.credentials.judge(r, t.Host, t.Port, r.URL.Scheme == "https"); no != nil {
		return no
	}
	r.Close = hasBody(r) && (g.hasRequestRule(t) || !slices.Contains(methodsOfBodies, r.Method))
	return nil
}

// methodsOfBodies are those with which most servers read a body. To one that does not, as some do not at some paths with any method,
// it is the next request on the connection, which was not judged.
var methodsOfBodies = []string{http.MethodPost, http.MethodPut, http.MethodPatch}

// interceptTLS is the server of a client's TLS and the client of the real server's.
func (g *Proxy) interceptTLS(client net.Conn, u *Tunnel) error {
	var judged error = errHello
	config := g.compiled.authority.serverConfig(u.Target.Host)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		judged = u.checkClientHello(hello)
		return nil, judged
	}
	conn := tls.Server(client, config)
	hello, cancel := context.WithTimeout(u.ctx, headerTimeout)
	defer cancel()
	if err := conn.HandshakeContext(hello); err != nil {
		conn.Close()
		if judged != nil {
			return fmt.Errorf("%w: %v", judged, err)
		}
		return handshakeError(err)
	}
	way := &originTransport{dial: func(ctx context.Context) (*originConn, error) { return g.dialTLS(ctx, u) }}
	defer way.idle.close()
	u.scheme, u.via = "https", &credentialTransport{next: way, bound: g.credentials.of(u.Target.Host, u.Target.Port), by: g.redactor, note: g.note}
	return g.serveRequestsIn(conn, u)
}

// handshakeError explains the usual cause of a client's alert.
func handshakeError(err error) error {
	if strings.Contains(err.Error(), "unsupported application protocols") { // crypto/tls has no type for it
		return fmt.Errorf("the client does not speak HTTP/1.1, the one protocol that is spoken where the policy has TLS ended: %w", err)
	}
	var alert tls.AlertError
	var op *net.OpError
	if errors.As(err, &alert) || errors.As(err, &op) && op.Op == "remote error" {
		return fmt.Errorf("the client does not take the sandbox's certificate: does it read the trust bundle? %w", err)
	}
	return fmt.Errorf("TLS with the client: %w", err)
}

// serverConfig is the TLS configuration towards clients of one host. No session is resumed: a ticket
// would carry a handshake over to a connection that was decided about anew. HTTP/1.1 is
// the one protocol that is agreed to: net/http's HTTP/2 server lets a client end the process
// (SETTINGS_HEADER_TABLE_SIZE while a header is written: concurrent map access).
func (a *authority) serverConfig(h hostrules.Host) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{h1},
		SessionTicketsDisabled: true,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.leaf(time.Now(), h) },
	}
}
