package proxy

import (
	"bytes"
	"context"
	"crypto/subtle"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// clientKey finds a request's connection in its context.
type clientKey struct{}

// newServer makes the HTTP server of proxies' clients and of requests within their tunnels.
func (g *Proxy) newServer() *http.Server {
	onlyHTTP1 := new(http.Protocols)
	onlyHTTP1.SetHTTP1(true)
	return &http.Server{
		Protocols:                    onlyHTTP1,
		Handler:                      http.HandlerFunc(g.serveHTTP),
		ReadHeaderTimeout:            headerTimeout,
		IdleTimeout:                  keepAliveTimeout,
		MaxHeaderBytes:               maxHeadBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return g.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, clientKey{}, c)
		},
		ConnState: g.connState,
	}
}

// connState has Close wait for the server's goroutines. One whose connection
// is hijacked is still in serveHTTP, which is waited for by itself.
func (g *Proxy) connState(conn net.Conn, s http.ConnState) {
	c := conn.(*clientConn)
	switch s {
	case http.StateNew:
		if c.entered = g.enter(); !c.entered {
			c.Close()
		}
	case http.StateIdle:
		c.handled = false
		c.headMeter.reset()
	case http.StateHijacked, http.StateClosed:
		c.headMeter.close()
		if c.entered {
			g.leave()
		}
	}
}

func (g *Proxy) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.enter() {
		return
	}
	defer g.leave()
	c := r.Context().Value(clientKey{}).(*clientConn)
	c.headMeter.stop()
	c.handled = true
	if r.ProtoMajor != 1 || r.Method == http.MethodConnect && (r.ContentLength != 0 || len(r.TransferEncoding) > 0) { // net/http lets HTTP/2's preface in
		w.Header().Set("Connection", "close")
		reply{http.StatusBadRequest, "This is no request of HTTP/1.1.\n"}.write(w)
		return
	}
	if r.Body != http.NoBody { // net/http waits for it after a refusal too; see watch
		c.body.begin(r.ContentLength)
		c.SetReadDeadline(time.Now().Add(g.idleTimeout))
	}
	if r.Method == http.MethodConnect {
		w.Header().Set("Connection", "close") // bytes after a CONNECT are not parsed as requests
	}
	switch {
	case c.tunnel != nil:
		g.serveTunneled(w, r, c)
	case !g.authorized(r.Header.Get("Proxy-Authorization")):
		if r.Header.Get("Proxy-Authorization") != "" { // else it waits to be asked, as many clients do
			g.eventLog.add(policy.Connection{Time: time.Now(), Protocol: string(HTTP), Reason: errKey.Why})
		}
		w.Header().Set("Proxy-Authenticate", `Basic realm="sandbox"`)
		reply{http.StatusProxyAuthRequired, "This proxy belongs to a sandbox and needs its password.\n"}.write(w)
	case r.Method == http.MethodConnect:
		g.serveConnect(w, r, c)
	default:
		g.serveAbsolute(w, r, c)
	}
}

// authorized reports whether a Proxy-Authorization has the proxy's key.
func (g *Proxy) authorized(auth string) bool {
	if g.cfg.Key == "" {
		return true
	}
	_, password, ok := parseBasic(auth)
	return ok && g.isKey(password)
}

func (g *Proxy) isKey(password string) bool {
	return subtle.ConstantTimeCompare([]byte(password), []byte(g.cfg.Key)) == 1
}

// serveConnect answers a CONNECT.
func (g *Proxy) serveConnect(w http.ResponseWriter, r *http.Request, c *clientConn) {
	u, shown, err := g.openConnect(r.Context(), r)
	_, rw, hijack := http.NewResponseController(w).Hijack()
	if hijack != nil {
		if u != nil {
			u.Close()
		}
		return
	}
	head, _ := rw.Reader.Peek(rw.Reader.Buffered())
	g.answerConnect(c, append(bytes.Clone(head), c.rest...), u, shown, err)
}

// answerConnect tells a client how its CONNECT went, and leaves the connection to a
// goroutine that has nothing of the request on its stack. head is what the client
// has sent since.
func (g *Proxy) answerConnect(c *clientConn, head []byte, u *Tunnel, shown string, err error) {
	c.trackedConn.SetWriteDeadline(time.Now().Add(headerTimeout))
	if err != nil {
		a := replyFor(err, shown)
		c.trackedConn.Write(a.raw(whyShort(err, shown)))
		c.Close()
		return
	}
	if _, err := c.trackedConn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		c.Close()
		u.Close()
		return
	}
	c.trackedConn.SetDeadline(time.Time{})
	u.ctx = g.ctx // the request's ends here
	if !g.spawn(func() { u.run(c.trackedConn, head) }) {
		c.Close()
		u.Close()
	}
}

// openConnect reads the target of a CONNECT and opens it. A proxy does not look at its Host
// field (RFC 9112, 3.2.2).
func (g *Proxy) openConnect(ctx context.Context, r *http.Request) (u *Tunnel, shown string, err error) {
	t := Target{Protocol: "connect"}
	t.Host, t.Port, err = hostrules.ParseHostPort(r.RequestURI, 0)
	if err != nil {
		return nil, quoteShort(r.RequestURI), g.invalidHost(t, r.RequestURI, err)
	}
	u, err = g.openTunnel(ctx, t)
	return u, hostrules.JoinHostPort(t.Host, t.Port), err
}

// whyShort is the sentence for a status line.
func whyShort(err error, shown string) string {
	if r := refusalOf(err); r != nil {
		return "refused by the sandbox: " + shown + ": " + r.Why
	}
	return shown + ": " + errnoOf(err).Error()
}
