package darwin

import (
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// On macOS there is one loopback, the machine's. The proxies listen there, each
// run's at ports of its own, and ask for the run's key; the profile lets TCP be
// connected to those ports and to the policy's Loopback, and to nothing else: no
// address, no name server, no port to listen at. This file says what of a policy's
// network comes of that, and what does not. It is pure.

// StandInPorts take the proxies' place where a profile is tried or shown: each run
// has ports of its own.
var StandInPorts = []int{1, 2}

// NetConfig is what of a network the harness serves on macOS.
func NetConfig(n policy.Network) compile.NetConfig {
	w := compile.NewNetConfig(n)
	w.Direct, w.Explains, w.HTTP, w.SOCKS = true, false, 0, 0
	w.Dials, w.Captures, w.GPGAgent = false, false, false
	return w
}

// ports are those of the loopback that the tool may connect to.
func (m Profile) ports(proxies []int) []int {
	var list []int
	for _, p := range m.Policy.Network.Loopback {
		list = append(list, int(p))
	}
	if m.Policy.Network.Proxied() {
		list = append(list, proxies...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// trustsSystem reports whether programs may let trustd check certificates. It
// fetches what a certificate names, from wherever that is, so a network that is
// bounded by name has it only where the policy says that it may be weaker.
func (m Profile) trustsSystem() bool {
	return m.Policy.Network.Proxied() && slices.Contains(m.Policy.May, policy.BoundNetwork)
}

// NeedsOwn says whether a run has a directory of its own, and whether the tool's
// HOME and TMPDIR are in it.
func (m Profile) NeedsOwn() (needed, homed bool) {
	homed = len(m.Policy.Files.Private) > 0 && !slices.Contains(m.Policy.Open, policy.BoundFiles)
	return homed || NetConfig(m.Policy.Network).HasFiles(), homed
}

// ownRules show the run's own directory. What the harness has put there can be
// read, and the agent's socket be connected to; the tool changes its home and its
// tmp alone.
func (m Profile) ownRules(own string) []emit.Rule {
	if own == "" {
		return nil
	}
	rules := []emit.Rule{{Path: own, Kind: emit.Read, Field: "Network"}}
	if _, homed := m.NeedsOwn(); homed {
		for _, name := range []string{compile.RunHome, compile.RunTmp} {
			rules = append(rules, emit.Rule{Path: pathrule.Join(own, name), Kind: emit.Write, Field: "Files.Private"})
		}
	}
	return rules
}

// missing is what the policy asks of the network that macOS cannot give.
func (m Profile) missing() []*policy.UnsupportedError {
	n := m.Policy.Network
	sockets, _ := verdict.AllowsAddress(m.Policy, verdict.Access{Op: verdict.OpConnect, Network: "unix"})
	const noNamespace = "macOS has no network namespaces"
	var list []*policy.UnsupportedError
	for _, f := range [...]struct {
		asked              bool
		what, why, instead string
	}{
		{len(n.Listen) > 0, "Network.Listen: servers inside cannot be reached", noNamespace + ": a port that the tool listened at would be the machine's", "leave Listen empty, or set Network.Host"},
		{len(n.UDP) > 0, "Network.UDP: no datagram is carried", noNamespace + " to capture", "leave UDP empty"},
		{n.Capture != nil, "Network.Capture: programs that use no proxy reach nothing", noNamespace + " to capture", "leave Capture nil"},
		{n.SSH, "Network.SSH: ssh reaches nothing", "macOS: the program by which it would connect cannot be shown under its name, for nothing is mounted", "use https"},
		{n.GPGAgent, "Network.GPGAgent: the agent cannot be reached", "macOS: gpg looks for it below HOME, whose path is too long for a socket's in a directory of the run's own", "sign with SSHAgent (gpg.format ssh)"},
		{n.SSHAgent && !sockets, "Network.SSHAgent: the agent cannot be reached", "where neither files nor processes are bounded local sockets are refused", "bound one of the two"},
		{len(n.Unix) > 0 && !sockets, "Network.Unix: the sockets cannot be reached", "where neither files nor processes are bounded local sockets are refused", "bound one of the two"},
	} {
		if f.asked {
			list = append(list, &policy.UnsupportedError{Bound: policy.BoundNetwork, What: f.what, Reason: f.why, Remedy: f.instead + ", or name network in May"})
		}
	}
	return list
}

// LacksNetwork is New's error for what is missing; nil where the policy says that
// the network may be weaker. The report has it as notes then.
func (m Profile) LacksNetwork() error {
	if slices.Contains(m.Policy.May, policy.BoundNetwork) {
		return nil
	}
	var list []error
	for _, e := range m.missing() {
		list = append(list, e)
	}
	return errors.Join(list...)
}

// networkNotes are what should be known of the network beside what holds it.
func (m Profile) networkNotes() []string {
	n := m.Policy.Network
	var notes []string
	for _, e := range m.missing() {
		notes = append(notes, e.What+" ("+e.Reason+"; remedy: "+e.Remedy+")")
	}
	if n.Proxied() {
		notes = append(notes, "there is no network namespace: the tool connects to the proxies on the machine's loopback, which ask for the run's key, and listens nowhere")
		if !m.trustsSystem() {
			notes = append(notes, "programs that let the system check certificates, as Go's and Swift's do, trust no server: trustd would fetch what a certificate names, past the proxies (remedy: name network in May)")
		}
	}
	if len(n.Loopback) > 0 {
		notes = append(notes, "ports of Loopback are those of the machine's loopback, of IPv6 too; nothing counts what passes there")
	}
	return notes
}
