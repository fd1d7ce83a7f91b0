package proxy

import (
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/sandbox/policy"

	"golang.org/x/net/http/httpguts"
)

// maxEventText is how many bytes an event keeps of a text.
const maxEventText = 1 << 10

// clip shortens what may be as long as a peer likes: events are kept.
func clip(s string) string {
	if len(s) > maxEventText {
		return s[:maxEventText] + "..."
	}
	return s
}

// PrintableEvent is an event as it may be told and kept. A method is one only if it is a token
// (RFC 9110, 9.1).
func PrintableEvent(e policy.Connection) policy.Connection {
	for _, s := range []*string{&e.Protocol, &e.Host, &e.Address, &e.Method, &e.Path, &e.Rule, &e.Reason, &e.Err} {
		*s = clip(errtext.Printable(clip(*s)))
	}
	if !httpguts.ValidHeaderFieldName(e.Method) {
		e.Method = ""
	}
	return e
}

// printableRequest is a request as Decide may be shown it.
func printableRequest(r policy.Request) policy.Request {
	r.Protocol, r.Method, r.Path = errtext.Printable(r.Protocol), errtext.Printable(r.Method), errtext.Printable(r.Path)
	return r
}
