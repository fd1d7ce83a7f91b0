package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An Environ is what the tool of a command with an Env of its own gets.
type Environ struct {
	Vars     []string
	Withheld int      // variables of the harness's that are not in Vars
	Secrets  []string // names of the caller's own that look like secrets
}

// OwnEnviron filters a command's own Env, of which no name stands there twice. host is the harness's
// environment, inside what the tool would get if the Env was nil, and network those variables of
// inside that lead to the network's proxies. A variable that is in own as it is in host
// is as in inside; what the caller has added, changed or removed stays so, but the network's
// variables are not removed. Entries without a name or "=" pass, as in os/exec. PWD is not
// added: os/exec leaves it to an own Env.
func OwnEnviron(own, host, inside, network []string) Environ {
	hosts, insides := values(host), values(inside)
	e := Environ{Vars: make([]string, 0, len(own)+len(network))}
	has := map[string]bool{}
	for _, kv := range own {
		name, value, found := strings.Cut(kv, "=")
		if !found || name == "" {
			e.Vars = append(e.Vars, kv)
			continue
		}
		has[name] = true
		theirs, inherited := hosts[name]
		given, passes := insides[name]
		switch {
		case passes && value == given:
			e.Vars = append(e.Vars, kv)
		case inherited && value == theirs && passes:
			e.Vars = append(e.Vars, name+"="+given)
		case inherited && value == theirs:
			e.Withheld++
		default:
			e.Vars = append(e.Vars, kv)
			if policy.HoldsSecret(name, value) {
				e.Secrets = append(e.Secrets, name)
			}
		}
	}
	always := values(network)
	for _, kv := range inside {
		name, _, _ := strings.Cut(kv, "=")
		_, needed := always[name]
		_, removed := hosts[name]
		if !has[name] && name != "PWD" && (needed || !removed) {
			e.Vars = append(e.Vars, kv)
		}
	}
	return e
}

// GivenEnviron is a command's own Env that passes as it is, where inside is what the tool would
// get if the Env was nil.
func GivenEnviron(own, inside []string) Environ {
	e := Environ{Vars: own}
	for _, kv := range own {
		name, value, _ := strings.Cut(kv, "=")
		if policy.HoldsSecret(name, value) && !slices.Contains(inside, kv) {
			e.Secrets = append(e.Secrets, name)
		}
	}
	return e
}

// keepsFromProxies reports whether no tool reaches the proxies that the harness itself uses, such as those of a sandbox around it. To a tool that reads of
// them, a network that it does not have looks like a proxy that fails.
func (s *Sandbox) keepsFromProxies() bool {
	n := s.Policy.Network
	return !n.Host && len(n.Loopback) == 0 && slices.ContainsFunc(s.Plan.Holdings, func(h plan.Holding) bool {
		return h.Bound == policy.BoundNetwork && len(h.By) > 0 && !slices.ContainsFunc(h.Lost, func(l plan.Loss) bool { return l.Absent })
	})
}

func values(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		if name, value, found := strings.Cut(kv, "="); found && name != "" {
			m[name] = value
		}
	}
	return m
}

// mostNamed bounds the names in a line of the report.
const mostNamed = 20

// SecretsPassed says, for the report, which of the caller's own variables look like secrets.
func SecretsPassed(names []string) string {
	more := ""
	if n := len(names) - mostNamed; n > 0 {
		names, more = names[:mostNamed], fmt.Sprintf(" and %d more", n)
	}
	return "the command's own Env passes what looks like a secret: " + strings.Join(names, ", ") + more +
		" (remedy: leave it out of Cmd.Env; a Credential of Network lets the tool use a secret that it does not have)"
}
