package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A reply is what a client is told when its request is not carried out.
type reply struct {
	status int
	text   string
}

// replyFor says in words that a person or a model understands what an error means
// for a request to a host.
func replyFor(err error, host string) reply {
	var dns *net.DNSError
	switch r := refusalOf(err); {
	case r != nil && (r.Limit == limitConnections || r == errBudget): // the refusals that time may end
		return reply{http.StatusServiceUnavailable, r.explain(host)}
	case r != nil:
		return reply{http.StatusForbidden, r.explain(host)}
	case errors.As(err, new(*insideError)):
		return reply{http.StatusBadGateway, fmt.Sprintf("%s is the sandbox's own loopback, and the connection failed inside: %v.\n", host, errnoOf(err))}
	case errors.Is(err, errBody):
		return reply{http.StatusBadRequest, err.Error() + "\n"}
	case errors.As(err, &dns):
		return reply{http.StatusBadGateway, fmt.Sprintf("The sandbox's network policy allows %s, but its name could not be looked up: %v.\n", host, dns.Err)}
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return reply{http.StatusGatewayTimeout, fmt.Sprintf("The sandbox's network policy allows %s, but it does not answer.\n", host)}
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return reply{http.StatusBadGateway, fmt.Sprintf("The sandbox's network policy allows %s, but the harness does not trust its server: %v. The policy's owner has to add that to Network.Authorities; nothing inside the sandbox can.\n", host, err)}
	}
	return reply{http.StatusBadGateway, fmt.Sprintf("The sandbox's network policy allows %s, but the connection failed: %v.\n", host, errnoOf(err))}
}

// errnoOf is an error without the addresses that net puts into it.
func errnoOf(err error) error {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return errno
	}
	return err
}

// explain names the host, the rule and what would help.
func (r *Refusal) explain(host string) string {
	rule := "none"
	if r.Rule != "" {
		rule = strconv.Quote(r.Rule)
	}
	again, help := "trying the same again will not help", "to allow it: the policy's owner has to change the policy; nothing inside the sandbox can."
	switch {
	case r.Limit != "":
		help = "to allow it: the policy's owner has to change the policy's Network.Limits." + r.Limit + "; nothing inside the sandbox can."
	case r.Instead != "":
		help = "what would work: " + r.Instead + "."
	}
	if r.Limit == limitConnections || r == errBudget {
		again = "try again when others have ended"
	}
	if host != "" {
		host = "host: " + host + "\n"
	}
	return fmt.Sprintf("Refused by the sandbox's network policy; %s.\n%srule: %s\nwhy: %s\n%s\n", again, host, rule, r.Why, help)
}

func (a reply) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(a.text)))
	w.WriteHeader(a.status)
	w.Write([]byte(a.text))
}

// raw is the answer to a CONNECT, whose clients show the first line at best: it
// says why in the place of the status's usual text.
func (a reply) raw(why string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		a.status, statusText(why), len(a.text), a.text)
}

// statusText makes a sentence fit for a status line.
func statusText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 200)]
}

// quoteShort quotes what is no host, and shortens it.
func quoteShort(s string) string { return strconv.Quote(s[:min(len(s), 100)]) }
