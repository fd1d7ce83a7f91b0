package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/proxy/redact"
)

// A credentialTransport is where secrets exist: between a request that has a placeholder and
// the connection that its server's certificate was verified on. Secrets go in
// within RoundTrip, into a copy of the request, and are taken out of the answer
// before that is returned, so that no handler, event or error outside ever holds one.
type credentialTransport struct {
	next  http.RoundTripper // verifies the server
	bound credentials       // of the target
	by    *redact.Redactor  // of every credential
	note  func(text string) // is told what the server does not get as it was sent
}

// RoundTrip puts the credentials of its target into a request.
func (b *credentialTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(b.bound) == 0 {
		return b.next.RoundTrip(r)
	}
	out := r.Clone(r.Context())
	out.Trailer = r.Trailer // which is filled in as the body is read
	if prepareHeaders(out.Header); r.Header.Get("Range") != "" {
		b.note(fmt.Sprintf("Range was left out of requests to %s, which has a credential: parts of an answer could have halves of it", r.URL.Host))
	}
	for _, c := range b.bound {
		c.put(out)
	}
	text := carried(out)
	for _, c := range b.bound {
		if strings.Contains(text, c.placeholder) {
			b.note(fmt.Sprintf("the placeholder of credential %s stood in another place of a request to %s than the policy's, and was sent as it is", c.name, r.URL.Host))
		}
	}
	res, err := b.next.RoundTrip(out)
	if err != nil {
		return nil, b.by.CleanError(err)
	}
	res.Request = r
	if err := b.by.Response(res); err != nil {
		res.Body.Close()
		return nil, err
	}
	return res, nil
}

// prepareHeaders makes a request's answer one that can be looked through: whole, since a secret
// could be read in halves, and not compressed.
func prepareHeaders(h http.Header) {
	// Apache obeys Request-Range, too; extensions of WebSockets are permessage-deflate; in EBCDIC, or UTF-7, a secret would not be known
	for _, name := range [...]string{"Range", "If-Range", "Request-Range", "Sec-Websocket-Extensions", "Grpc-Accept-Encoding", "Connect-Accept-Encoding", "Want-Content-Digest", "Want-Repr-Digest", "Accept-Charset"} {
		h.Del(name)
	}
	h.Set("Accept-Encoding", "identity")
	for i, v := range h["Accept"] {
		h["Accept"][i] = withoutCharset(v)
	}
}

// withoutCharset takes the parameters away by which some servers choose an answer's
// charset.
func withoutCharset(accept string) string {
	if !strings.Contains(strings.ToLower(accept), "charset") {
		return accept
	}
	types := strings.Split(accept, ",")
	for i, t := range types {
		parameters := strings.Split(t, ";")
		parameters = slices.DeleteFunc(parameters, func(p string) bool {
			name, _, _ := strings.Cut(p, "=")
			return strings.EqualFold(strings.TrimSpace(name), "charset")
		})
		types[i] = strings.Join(parameters, ";")
	}
	return strings.Join(types, ",")
}
