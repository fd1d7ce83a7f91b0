package proxy

import (
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// serveRequestsIn serves the requests within a tunnel, on the client's connection, until that
// ends.
func (g *Proxy) serveRequestsIn(conn net.Conn, u *Tunnel) error {
	tracked, err := g.trackConn(conn, Target{})
	if err != nil {
		return err
	}
	c := newClient(g, tracked, u)
	g.server.Serve(&singleListener{conn: c})
	return c.unread
}

// serveTunneled answers a request inside of a tunnel: it names its host, which has
// to be the tunnel's.
func (g *Proxy) serveTunneled(w http.ResponseWriter, r *http.Request, c *clientConn) {
	u := c.tunnel
	preset := map[string]uint16{"http": 80, "https": 443}[u.scheme]
	t := u.Target
	t.Protocol = u.scheme
	x := &proxiedRequest{g: g, c: c, target: t, decision: u.Decision, scheme: u.scheme, via: u.via}
	if !x.startEvent(w, r) {
		return
	}
	x.event.Address = address(u.Address)
	for _, field := range []string{r.Host, r.URL.Host} {
		if x.err == nil {
			x.err = g.checkHostField(t, field)
		}
	}
	if x.err == nil {
		x.authority = authorityOf(t, r.Host, preset)
	}
	if x.err == nil && (r.URL.Opaque != "" || r.URL.User != nil || r.URL.IsAbs() && r.URL.Scheme != u.scheme) {
		x.err = t.refuse(hostrules.Decision{Rule: u.Decision.Rule, Why: "the request is for another kind of URL"})
	}
	x.serve(w, r)
}

// checkHostField holds a Host field against the target. None is fine: HTTP/1.0.
func (g *Proxy) checkHostField(t Target, field string) error {
	if field == "" {
		return nil
	}
	h, port, err := hostrules.ParseHostPort(field, t.Port)
	if err != nil {
		return t.refuse(hostrules.Decision{Why: "the Host field: " + err.Error()})
	}
	if port != t.Port {
		return t.refuse(hostrules.Decision{Why: fmt.Sprintf("the Host field names port %d", port)})
	}
	return g.checkName(t, h.String(), "Host field")
}

// serveAbsolute answers a request for a whole URL. Its Host field is not looked at (RFC 9112,
// 3.2.2): net/http has put the URL's host in its place.
func (g *Proxy) serveAbsolute(w http.ResponseWriter, r *http.Request, c *clientConn) {
	t := Target{Protocol: string(HTTP)}
	var err error
	if r.RequestURI[0] == '/' && r.Host != c.LocalAddr().String() { // Java's HttpClient asks so for a WebSocket
		r.URL.Scheme, r.URL.Host = "http", r.Host
	}
	switch {
	case r.URL.Host == "" || r.URL.Opaque != "":
		reply{http.StatusBadRequest, "This is the sandbox's HTTP proxy, not a server: ask for a whole URL, or use CONNECT.\n"}.write(w)
		return
	case r.URL.Scheme != "http":
		reply{http.StatusBadRequest, fmt.Sprintf("This proxy carries http URLs, and every other protocol by CONNECT; this is %s.\n", quoteShort(r.URL.Scheme))}.write(w)
		return
	case r.URL.User != nil:
		err = fmt.Errorf("%w: a URL with a user's name in it", hostrules.ErrHost)
	default:
		t.Host, t.Port, err = hostrules.ParseHostPort(r.URL.Host, 80)
	}
	if err != nil {
		err = g.invalidHost(t, r.URL.Host, err)
		replyFor(err, quoteShort(r.URL.Host)).write(w)
		return
	}
	x := &proxiedRequest{g: g, c: c, target: t, scheme: "http", via: g.transport, authority: hostField(t.Host, t.Port, 80)}
	if !x.startEvent(w, r) {
		return
	}
	x.decision, x.err = g.decide(r.Context(), &x.target, r.Method, x.path)
	x.serve(w, r)
}

// authorityOf is the Host of a request to a target: the target's own, or the name that
// a Host field gives to a target that is an address.
func authorityOf(t Target, field string, preset uint16) string {
	if h, _, err := hostrules.ParseHostPort(field, t.Port); err == nil && t.Host.IsAddr() && !h.IsAddr() {
		return hostField(h, t.Port, preset)
	}
	return hostField(t.Host, t.Port, preset)
}

// hostField is the Host of a request to a target.
func hostField(h hostrules.Host, port, preset uint16) string {
	if port != preset {
		return hostrules.JoinHostPort(h, port)
	}
	if a, _ := h.Addr(); a.Is6() {
		return "[" + h.String() + "]"
	}
	return h.String()
}

// invalidHost notes and refuses client input that is not a valid host.
func (g *Proxy) invalidHost(t Target, s string, err error) error {
	e := newEvent(t)
	e.Host = quoteShort(s)
	err = &Refusal{Host: e.Host, Why: err.Error()}
	g.finish(e, err)
	return err
}

// A singleListener is a listener of one connection: a tunnel whose requests are read.
type singleListener struct {
	conn *clientConn
	once sync.Once
}

// Accept returns the connection, and ends when that is closed.
func (s *singleListener) Accept() (conn net.Conn, err error) {
	s.once.Do(func() { conn = s.conn })
	if conn == nil {
		<-s.conn.done
		err = net.ErrClosed
	}
	return conn, err
}

func (s *singleListener) Close() error { return s.conn.Close() }

func (s *singleListener) Addr() net.Addr { return s.conn.LocalAddr() }
