package sandbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func meant(t *testing.T, p Policy) darwin.Profile {
	t.Helper()
	m, err := verdict.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return darwin.Profile{Evaluator: m}
}

// TestWhatMacOSCannotGiveOfANetworkIsNamed: as an error, or as a note where the
// policy says that the network may be weaker; never silently.
func TestWhatMacOSCannotGiveOfANetworkIsNamed(t *testing.T) {
	bare := []Bound{policy.BoundFiles, policy.BoundProcesses}
	for _, tt := range []struct {
		field string // "": it is given
		p     Policy
	}{
		{"", Policy{Network: Network{Hosts: []string{"*"}, Loopback: []uint16{5432}, Unix: []string{"/run/db.sock"}, SSHAgent: true, Requests: []policy.RequestRule{{Host: "example.org"}}}}},
		{"", Policy{Network: Network{Host: true, Unix: []string{"/run/db.sock"}, SSHAgent: true}}},
		{"", Policy{Open: bare, Network: Network{Hosts: []string{"*"}}}},
		{"Network.Listen", Policy{Network: Network{Listen: []uint16{80}}}},
		{"Network.UDP", Policy{Network: Network{UDP: []string{"a.example:1"}, Capture: func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }}}},
		{"Network.Capture", Policy{Network: Network{Capture: func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }}}},
		{"Network.SSH", Policy{Network: Network{Hosts: []string{"*"}, SSH: true}}},
		{"Network.GPGAgent", Policy{Network: Network{GPGAgent: true}}},
		{"Network.SSHAgent", Policy{Open: bare, Network: Network{SSHAgent: true}}},
		{"Network.Unix", Policy{Open: bare, Network: Network{Unix: []string{"/run/db.sock"}}}},
	} {
		err := meant(t, tt.p).LacksNetwork()
		var unsupported *UnsupportedError
		switch {
		case tt.field == "" && err != nil, tt.field != "" && (!errors.As(err, &unsupported) || !strings.HasPrefix(unsupported.What, tt.field+":") || !errors.Is(err, errors.ErrUnsupported)):
			t.Errorf("%q: %v", tt.field, err)
		}
		tt.p.May = []Bound{policy.BoundNetwork}
		m := meant(t, tt.p)
		noted := slices.ContainsFunc(networkHolding(m).Notes, func(n string) bool { return strings.HasPrefix(n, tt.field+":") })
		if err := m.LacksNetwork(); err != nil || noted != (tt.field != "") {
			t.Errorf("%q, where the network may be weaker: %v, noted %t", tt.field, err, noted)
		}
	}
}

func networkHolding(m darwin.Profile) plan.Holding {
	list := m.Holdings()
	return list[slices.IndexFunc(list, func(h plan.Holding) bool { return h.Bound == policy.BoundNetwork })]
}

// TestTrustdIsNoWayPastTheProxies: it fetches what a certificate names.
func TestTrustdIsNoWayPastTheProxies(t *testing.T) {
	for _, tt := range []struct {
		name  string
		p     Policy
		trust bool
		state State
	}{
		{"no network", Policy{}, false, Held},
		{"hosts", Policy{Network: Network{Hosts: []string{"*"}}}, false, Held},
		{"hosts, and may be weaker", Policy{Network: Network{Hosts: []string{"*"}}, May: []Bound{policy.BoundNetwork}}, true, Weaker},
		{"a port alone, and may be weaker", Policy{Network: Network{Loopback: []uint16{80}}, May: []Bound{policy.BoundNetwork}}, false, Held},
	} {
		h, err := emitted(tt.p)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"com.apple.trustd", "com.apple.trustd.agent"} {
			if v := h.Evaluate(seatbelt.Query{Operation: "mach-lookup", Name: name}); v.Allow != tt.trust {
				t.Errorf("%s: %s: %s", tt.name, name, v.Why)
			}
		}
		line := judge(networkHolding(meant(t, tt.p)), runner.ProfileEvidence(nil, 0, 0, "HTTP"), false)
		if line.State != tt.state {
			t.Errorf("%s: %+v", tt.name, line)
		}
	}
}

// TestTheNetworksLineSaysHowItIsHeld: by the profile and the proxies, and that
// nobody has read it back. Proxies that do not serve are not held.
func TestTheNetworksLineSaysHowItIsHeld(t *testing.T) {
	h := networkHolding(meant(t, Policy{Network: Network{Hosts: []string{"*"}}}))
	line := func(proxied string) BoundReport {
		return judge(h, runner.ProfileEvidence(nil, 0, 0, proxied), false)
	}
	got := line("HTTP at 127.0.0.1:50000")
	text := (&Report{Bounds: []BoundReport{got}}).String()
	for _, want := range []string{"seatbelt (", "egress proxy (HTTP at 127.0.0.1:50000; the proxies ask for the run's key", "inferred", "not read back", "listens nowhere"} {
		if !strings.Contains(text, want) {
			t.Errorf("the line lacks %q:\n%s", want, text)
		}
	}
	if got := line(""); got.State != Weaker || got.Mechanisms[1].Held {
		t.Errorf("without Proxies: %+v", got)
	}
}

// TestTheRunsOwnDirectoryIsToBeRead: the bundle in it stays as the harness wrote
// it, the agent's socket can be connected to, and home and tmp are the tool's.
func TestTheRunsOwnDirectoryIsToBeRead(t *testing.T) {
	const own = "/private/var/folders/x/T/holdfast-1"
	p := Policy{Files: Files{Private: []string{"/tmp", "/private/var/folders"}}, Network: Network{Hosts: []string{"*"}, SSHAgent: true, Authorities: ""}}
	for _, homed := range []bool{true, false} {
		if !homed {
			p.Files.Private = nil
		}
		m := meant(t, p)
		if needed, got := m.NeedsOwn(); !needed || got != homed {
			t.Errorf("needed %t, homed %t", needed, got)
		}
		h := heldProfile{}
		e, err := emit.Emit(m.Grants(darwin.Run{Own: own, Proxies: runPorts}))
		if err != nil {
			t.Fatal(err)
		}
		params := map[string]string{}
		for _, p := range e.Params {
			params[p.Name] = p.Value
		}
		if h.Profile, err = seatbelt.Parse(seatbelt.Source{Text: e.Profile}, seatbelt.Options{Params: params}); err != nil {
			t.Fatal(err)
		}
		for _, q := range []struct {
			operation, path, protocol string
			want                      bool
		}{
			{"file-read-data", own + "/" + compile.BundleFile, "", true}, {"file-write-data", own + "/" + compile.BundleFile, "", false}, {"file-write-unlink", own + "/" + compile.BundleFile, "", false},
			{"network-outbound", own + "/" + compile.SshFile, "unix", true}, {"network-bind", own + "/" + compile.SshFile, "unix", false}, {"file-write-unlink", own + "/" + compile.SshFile, "", false},
			{"file-write-create", own + "/home/f", "", homed}, {"file-write-create", own + "/tmp/f", "", homed}, {"file-write-unlink", own + "/tmp", "", false},
			{"file-read-data", "/private/var/folders/x/T/holdfast-2/" + compile.BundleFile, "", false}, {"network-outbound", "/private/var/folders/x/T/holdfast-2/" + compile.SshFile, "unix", false},
		} {
			if v := h.Evaluate(seatbelt.Query{Operation: q.operation, Path: q.path, Protocol: q.protocol, VnodeType: "REGULAR-FILE"}); v.Allow != q.want {
				t.Errorf("homed %t: %s of %s: %t: %s", homed, q.operation, q.path, v.Allow, v.Why)
			}
		}
	}
}
