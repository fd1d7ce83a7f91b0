package sandbox

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/darwin"
)

// explain says what the harness does for a run's network, in the lines of a
// printed plan. It names no secret.
func explainNetwork(n Network, w compile.NetConfig) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, "harness  "+format+"\n", args...)
	}
	switch {
	case w.Explains:
		line("serve HTTP at %d of the tool's loopback, where there is a network namespace: deny every host, in words", w.HTTP)
	case w.Proxied && w.Direct:
		line("serve HTTP and SOCKS5 at the machine's loopback, each run at ports of its own and with a key (here: %d and %d): allow %s", darwin.StandInPorts[0], darwin.StandInPorts[1], listed(n.Hosts))
	case w.Proxied:
		line("serve HTTP at %d and SOCKS5 at %d of the tool's loopback: allow %s", w.HTTP, w.SOCKS, listed(n.Hosts))
	}
	if w.Proxied {
		if len(n.UDP) > 0 && w.Captures {
			line("carry datagrams to %s, by the capture", listed(n.UDP))
		}
		if len(n.Deny) > 0 {
			line("deny %s whatever else says", listed(n.Deny))
		}
		if n.Decide != nil {
			line("ask Decide about every other host")
		}
	}
	for _, port := range n.Loopback {
		if w.Direct {
			line("leave port %d of the machine's loopback to the tool", port)
			continue
		}
		line("connect port %d of the tool's loopback to its own", port)
	}
	if w.Dials {
		for _, port := range n.Listen {
			line("may connect to port %d of the tool's loopback", port)
		}
	}
	for _, c := range n.Credentials {
		line("put the secret for $%s into requests to %s (%s)", c.Name, listed(c.Hosts), strings.TrimSpace(c.Place+" "+c.Field))
	}
	for _, r := range n.Requests {
		line("let only %s of %s be asked of %s", anyOr(r.Methods, "any method"), anyOr(r.Paths, "any path"), r.Host)
	}
	return b.String()
}

func anyOr(words []string, any string) string {
	if len(words) == 0 {
		return any
	}
	return listed(words)
}

func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
