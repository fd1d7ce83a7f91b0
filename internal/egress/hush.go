package egress

import (
	"context"
	"net/http"
	"net/http/httptrace"
)

// A hush sends requests by another way, and of those with a body leaves interim
// answers (103 and the like) where they are. httputil passes them on by a trace, in
// the transport's goroutine, while the one that reads the body may be telling the
// client to send it (100): two writers of one buffer, which nothing guards, in
// goroutines where a panic is the harness's.
type hush struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (h hush) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(quiet(r.Context()))
	}
	return h.next.RoundTrip(r)
}

// A quietContext is another context without its trace.
type quietContext struct{ context.Context }

func (c quietContext) Value(key any) any {
	v := c.Context.Value(key)
	if _, is := v.(*httptrace.ClientTrace); is {
		return nil
	}
	return v
}

// quiet leaves of a trace what tells which connection is used.
func quiet(ctx context.Context) context.Context {
	t := httptrace.ContextClientTrace(ctx)
	if ctx = (quietContext{ctx}); t != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: t.GotConn})
	}
	return ctx
}
