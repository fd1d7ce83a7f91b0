package proxy

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
)

// An exchange is one HTTP request that can be read, and its response, whichever
// way it came: to the proxy, inside of a tunnel, or inside of TLS that is
// terminated.
type exchange struct {
	g         *Gateway
	c         *clientConn
	target    Target
	decision  Decision
	scheme    string
	authority string // the Host that is sent
	via       http.RoundTripper

	event          Event
	err            error
	sent, received atomic.Int64
	heads          int64        // what the response's head costs of the gateway's budget
	spent          atomic.Bool  // an upgraded connection has met the limit on bytes
	uploaded       atomic.Bool  // all of the request's body was read
	reading        atomic.Int32 // of the request's body, under way
	told           bool         // the event was noted
	broken         atomic.Bool  // the request's body could not be read to its end
}

// longestPath is what an event keeps of one.
const longestPath = 512

// exchangeKey finds a request's exchange in its context.
type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// begin fills in what is known of the event.
func (x *exchange) begin(r *http.Request) {
	x.event = begin(x.target)
	path := r.URL.EscapedPath()
	x.event.Method, x.event.Path = r.Method[:min(len(r.Method), 32)], path[:min(len(path), longestPath)]
	if len(r.RequestURI) > longestPath { // which both are parts of, and an event is kept for long
		x.event.Method, x.event.Path = strings.Clone(x.event.Method), strings.Clone(x.event.Path)
	}
}

// run carries a request out that was decided: err says how. It notes the event
// even when the server's connection breaks, which is a panic of http.ErrAbortHandler.
func (x *exchange) run(w http.ResponseWriter, r *http.Request) {
	defer x.end()
	w.Header()["Content-Type"] = nil // else net/http guesses where the server does not say
	if x.admit(r); x.err != nil {
		x.end()
		answerTo(x.err, x.shown()).write(w)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || r.Body != http.NoBody {
		r.Header.Del("Upgrade") // h2c would carry requests that nobody reads; a body would be written beside a WebSocket
	}
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	if r.Body != http.NoBody {
		var end func()
		ctx, end = x.watch(ctx, w)
		defer end()
	}
	x.g.forwarder.ServeHTTP(w, r.WithContext(ctx))
}

// admit refuses what is carried to no host.
func (x *exchange) admit(r *http.Request) {
	switch {
	case x.err != nil:
	case r.Method == http.MethodTrace || r.Method == http.MethodConnect:
		x.err = x.target.refuse(Decision{Rule: x.decision.Rule, Why: "the method " + r.Method + " is not carried"})
	case x.g.meter.full():
		x.err = x.target.spent(x.decision.Rule)
	}
}

// end notes the event, once: before the client can know of its answer's end.
func (x *exchange) end() {
	if x.told {
		return
	}
	x.told = true
	x.g.heads.back(x.heads)
	if x.spent.Load() {
		x.err = errBytes
	}
	x.event.Rule = x.decision.Rule
	x.event.Sent, x.event.Received = x.sent.Load(), x.received.Load()
	x.g.finish(x.event, x.err)
}

func (x *exchange) shown() string { return join(x.target.Host, x.target.Port) }

// newForwarder makes the one ReverseProxy of a gateway. What differs between
// requests is in their exchange.
func newForwarder(g *Gateway) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      screened{g},
		ModifyResponse: modify,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			x := exchangeOf(r.Context())
			x.err = err
			x.end()
			answerTo(err, x.shown()).write(w)
		},
		BufferPool:    copyBuffers{},
		FlushInterval: -1, // a server may say a part of its answer, and wait for hours
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}

// copyBuffers lends the buffers of tunnels to ReverseProxy.
type copyBuffers struct{}

// Get returns a buffer.
func (copyBuffers) Get() []byte { return buffers.Get().(*[bufferSize]byte)[:] }

// Put takes it back.
func (copyBuffers) Put(b []byte) { buffers.Put((*[bufferSize]byte)(b)) }

// rewrite makes the request that goes out. ReverseProxy has removed the
// hop-by-hop fields, and the X-Forwarded fields and odd queries, which are the
// client's own and are put back.
func rewrite(pr *httputil.ProxyRequest) {
	x := exchangeOf(pr.In.Context())
	out := pr.Out
	out.URL.Scheme, out.URL.Host, out.Host = x.scheme, join(x.target.Host, x.target.Port), x.authority
	out.URL.User, out.URL.RawQuery = nil, pr.In.URL.RawQuery
	out.Header.Del("Expect") // the client is told to go on when its body is read
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := pr.In.Header[name]; v != nil {
			out.Header[name] = v
		}
	}
	if out.Body != nil && out.Body != http.NoBody {
		out.Body = &upload{ReadCloser: out.Body, x: x, from: pr.In, to: out.Trailer}
	}
}

// modify looks at a response on its way in.
func modify(r *http.Response) error {
	x := exchangeOf(r.Request.Context())
	if r.StatusCode < 100 || r.StatusCode > 999 { // which net/http would not write
		return errStatus
	}
	if r.StatusCode != http.StatusSwitchingProtocols {
		if r.Body = (&download{r.Body, r.ContentLength, x}); r.ContentLength == 0 || r.Request.Method == http.MethodHead {
			x.end()
		}
		if r.Request.Body != nil && r.Request.Body != http.NoBody && !x.uploaded.Load() {
			// Else net/http reads what is left of the request itself before it answers: the
			// server would get a body with a hole in it.
			r.Header.Set("Connection", "close")
		}
		return nil
	}
	if asked, got := r.Request.Header.Get("Upgrade"), r.Header.Get("Upgrade"); !strings.EqualFold(asked, "websocket") || !strings.EqualFold(got, "websocket") {
		return errSwitched
	}
	rw, ok := r.Body.(io.ReadWriteCloser)
	if !ok {
		return errSwitched
	}
	r.Body = &switched{rw, x}
	return nil
}

// screened sends requests by the way of their exchange, once they were judged.
type screened struct{ g *Gateway }

// RoundTrip judges and sends a request.
func (s screened) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r.Context())
	if err := s.g.screen(r, x.target); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	return x.via.RoundTrip(r)
}
