package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/proxy"
)

// A Summary is what a run's network was denied so far, and what became of it.
type Summary struct {
	Gateway proxy.Summary
	Notes   []string
}

// Summary returns what there is to report.
func (n *Network) Summary() Summary {
	var s Summary
	if g := n.gatewayMade(); g != nil {
		s.Gateway = g.Summary()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Notes = slices.Clone(n.notes)
	return s
}

// Served says what the harness serves of the run's network, and what has passed; "" is
// nothing.
func (n *Network) Served() (proxied, captured string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var served []string
	for _, s := range n.served {
		if strings.HasPrefix(s, captureWord) {
			captured = s
			continue
		}
		served = append(served, s)
	}
	if len(served) == 0 {
		return "", captured
	}
	proxied = strings.Join(served, ", ")
	if n.of.serves {
		s := n.gateway.Summary()
		proxied += fmt.Sprintf("; %d allowed, %d denied, %d bytes sent, %d received", s.Allowed, s.Denied, s.Sent, s.Received)
	}
	return proxied, captured
}

// NoteEnv notes that what the tool has of a command's own Env does not lead to the proxies:
// the tool then says no more than that it finds no host.
func (n *Network) NoteEnv(env []string) {
	if !n.wiring.Proxied && !n.explains {
		return
	}
	leads := func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"http_proxy", "https_proxy", "all_proxy"}, strings.ToLower(name)) && strings.Contains(value, n.http.String())
	}
	if !slices.ContainsFunc(env, leads) {
		n.note("the command's own Env names other proxies, or, as Env.AsGiven passes it, none: most programs reach nothing; add Cmd.NetworkEnviron to it")
	}
}
