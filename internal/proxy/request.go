package proxy

import (
	"cmp"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A proxiedRequest is one HTTP request that can be read, and its response, whichever
// way it came: to the proxy, inside of a tunnel, or inside of TLS that is
// intercepted.
type proxiedRequest struct {
	g         *Proxy
	c         *clientConn
	target    Target
	decision  hostrules.Decision
	scheme    string
	authority string // the Host that is sent
	path      string // of the target, as the client has written it
	via       http.RoundTripper

	event          policy.Connection
	err            error
	sent, received atomic.Int64
	heads          int64        // what the response's head costs of the proxy's budget
	limitReached   atomic.Bool  // an upgraded connection has met the limit on bytes
	uploaded       atomic.Bool  // all of the request's body was read
	uploadReads    atomic.Int32 // of the request's body, under way
	finished       bool         // the event was noted
	uploadBroken   atomic.Bool  // the request's body could not be read to its end
}

// maxEventPath is what an event keeps of one.
const maxEventPath = 512

// requestKey finds a request's proxiedRequest in its context.
type requestKey struct{}

func requestOf(ctx context.Context) *proxiedRequest {
	x, _ := ctx.Value(requestKey{}).(*proxiedRequest)
	return x
}

// startEvent fills in what is known of the event. False: the request's target cannot go on as it came, and the client was told.
func (x *proxiedRequest) startEvent(w http.ResponseWriter, r *http.Request) bool {
	var passes bool
	if x.path, passes = targetPath(r); !passes {
		reply{http.StatusBadRequest, "The request's target could not be passed on as it was written: write a path that begins with one slash, or escape its odd characters.\n"}.write(w)
		return false
	}
	x.event = newEvent(x.target)
	x.event.Method, x.event.Path = r.Method[:min(len(r.Method), 32)], x.path[:min(len(x.path), maxEventPath)]
	if len(r.RequestURI) > maxEventPath { // which both are parts of, and an event is kept for long
		x.event.Method, x.event.Path = strings.Clone(x.event.Method), strings.Clone(x.event.Path)
	}
	return true
}

// targetPath returns the path of a request's target byte for byte, since url.URL escapes all of a path that has one character which RFC 3986 does not
// know, and what it escapes anew it has unescaped before. Such a path is sent as URL.Opaque, which may not begin with two slashes.
func targetPath(r *http.Request) (path string, passes bool) {
	path, _, query := strings.Cut(r.RequestURI, "?")
	if r.Method == http.MethodConnect {
		return "", true // it is carried to no host
	}
	if path[0] != '/' && path != "*" { // absolute form
		_, rest, has := strings.Cut(path, "://")
		if !has {
			return "", false
		}
		switch i := strings.IndexByte(rest, '/'); {
		case i >= 0:
			path = rest[i:]
		case r.Method == http.MethodOptions && !query: // RFC 9112, 3.2.4
			path = "*"
		default:
			path = "/"
		}
	}
	return path, !strings.HasPrefix(path, "//") || path == r.URL.EscapedPath()
}

// serve carries a request out that was decided: err says how. It notes the event
// even when the server's connection breaks, which is a panic of http.ErrAbortHandler.
func (x *proxiedRequest) serve(w http.ResponseWriter, r *http.Request) {
	defer x.finishEvent()
	w.Header()["Content-Type"] = nil // else net/http guesses where the server does not say
	if x.admit(r); x.err != nil {
		x.finishEvent()
		replyFor(x.err, x.hostPort()).write(w)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || r.Body != http.NoBody {
		r.Header.Del("Upgrade") // h2c would carry requests that are not judged; a body would be written beside a WebSocket
	}
	ctx := context.WithValue(r.Context(), requestKey{}, x)
	if r.Body != http.NoBody {
		var end func()
		ctx, end = x.watchIdle(ctx, w)
		defer end()
	}
	x.g.reverseProxy.ServeHTTP(w, r.WithContext(ctx))
}

// admit refuses what is carried to no host.
func (x *proxiedRequest) admit(r *http.Request) {
	switch {
	case x.err != nil:
	case r.Method == http.MethodTrace || r.Method == http.MethodConnect:
		x.err = x.target.refuse(hostrules.Decision{Rule: x.decision.Rule, Why: "the method " + r.Method + " is not carried"})
	case x.g.meter.exhausted():
		x.err = x.target.spent(x.decision.Rule)
	}
}

// finishEvent notes the event, once: before the client can know of its answer's end.
func (x *proxiedRequest) finishEvent() {
	if x.finished {
		return
	}
	x.finished = true
	x.g.headerBudget.release(x.heads)
	if x.limitReached.Load() {
		x.err = errBytes
	}
	if x.decision.Outcome == hostrules.Allow {
		x.err = cmp.Or(x.g.overruled(x.target), x.err)
	}
	x.event.Rule = x.decision.Rule
	x.event.Sent, x.event.Received = x.sent.Load(), x.received.Load()
	x.g.finish(x.event, x.err)
}

func (x *proxiedRequest) hostPort() string {
	return hostrules.JoinHostPort(x.target.Host, x.target.Port)
}

// newReverseProxy makes the one ReverseProxy of a proxy. What differs between
// requests is in their proxiedRequest.
func newReverseProxy(g *Proxy) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        rewriteRequest,
		Transport:      policyTransport{g},
		ModifyResponse: modifyResponse,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			x := requestOf(r.Context())
			if x.err = err; hasBody(r) && !x.uploaded.Load() && x.g.overruled(x.target) != nil {
				w.Header().Set("Connection", "close") // else net/http waits for the rest of a request that no server hears any more
			}
			if x.c.badBody.Load() { // at which net/http has ended the request's context
				x.err = errTrailer
			}
			x.finishEvent()
			replyFor(x.err, x.hostPort()).write(w)
		},
		BufferPool:    copyBuffers{},
		FlushInterval: -1, // a server may say a part of its answer, and wait for hours
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}

// copyBuffers lends the buffers of tunnels to ReverseProxy.
type copyBuffers struct{}

func (copyBuffers) Get() []byte { return buffers.Get().(*[bufferSize]byte)[:] }

func (copyBuffers) Put(b []byte) { buffers.Put((*[bufferSize]byte)(b)) }

// rewriteRequest makes the request that goes out. ReverseProxy has removed the
// hop-by-hop fields, and the X-Forwarded fields and odd queries, which are the
// client's own and are put back.
func rewriteRequest(pr *httputil.ProxyRequest) {
	x := requestOf(pr.In.Context())
	out := pr.Out
	out.URL.Scheme, out.URL.Host, out.Host = x.scheme, hostrules.JoinHostPort(x.target.Host, x.target.Port), x.authority
	out.URL.User, out.URL.RawQuery = nil, pr.In.URL.RawQuery
	if x.path != out.URL.EscapedPath() {
		out.URL.Opaque = x.path
	}
	out.Header.Del("Expect") // the client is told to go on when its body is read
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := pr.In.Header[name]; v != nil {
			out.Header[name] = v
		}
	}
	if out.Body != nil && out.Body != http.NoBody {
		out.Body = &uploadBody{ReadCloser: out.Body, x: x, from: pr.In, to: out.Trailer}
	}
}

// modifyResponse looks at a response on its way in.
func modifyResponse(r *http.Response) error {
	x := requestOf(r.Request.Context())
	if r.StatusCode < 100 || r.StatusCode > 999 { // which net/http would not write
		return errStatus
	}
	if r.StatusCode != http.StatusSwitchingProtocols {
		if r.Body = (&downloadBody{r.Body, r.ContentLength, x}); r.ContentLength == 0 || r.Request.Method == http.MethodHead {
			x.finishEvent()
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
	r.Body = &upgradedConn{rw, x}
	return nil
}

// A policyTransport judges requests and sends them by the transport of their proxiedRequest.
type policyTransport struct{ g *Proxy }

func (s policyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := requestOf(r.Context())
	if err := s.g.judgeRequest(r, x.target); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	return x.via.RoundTrip(r)
}
