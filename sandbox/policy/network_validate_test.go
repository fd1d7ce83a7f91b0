package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestValidateNamesTheNetworksField(t *testing.T) {
	secret := policy.Credential{Name: "TOKEN", Secret: "a secret", Hosts: []string{"example.com"}, Place: policy.PlaceBearer}
	with := func(change func(c *policy.Credential)) policy.Network {
		c := secret
		change(&c)
		return policy.Network{Hosts: []string{"example.com"}, Credentials: []policy.Credential{secret, c}}
	}
	asks := func(r policy.RequestRule) policy.Network {
		return policy.Network{Hosts: []string{"example.com"}, Requests: []policy.RequestRule{{Host: "example.com"}, r}}
	}
	private := func(c policy.Credential, rule string) policy.Network {
		return policy.Network{Hosts: []string{"mirror.example:443@private"}, Credentials: []policy.Credential{c}, Requests: []policy.RequestRule{{Host: rule}}}
	}
	ports := make([]uint16, 16+1)
	for i := range ports {
		ports[i] = uint16(8000 + i)
	}
	capture := func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }
	decide := func(context.Context, policy.Request) policy.Verdict { return policy.Verdict{} }
	for _, tt := range []struct {
		name    string
		network policy.Network
		field   string
	}{
		{"hosts and the harness's network", policy.Network{Host: true, Hosts: []string{"example.com"}}, "Network.Hosts"},
		{"denials and the harness's network", policy.Network{Host: true, Deny: []string{"example.com"}}, "Network.Deny"},
		{"the harness's ports and its network", policy.Network{Host: true, Loopback: []uint16{5432}}, "Network.Loopback"},
		{"a port to dial and the harness's network", policy.Network{Host: true, Listen: []uint16{8000}}, "Network.Listen"},
		{"a credential and the harness's network", policy.Network{Host: true, Credentials: []policy.Credential{secret}}, "Network.Credentials"},
		{"request rules and the harness's network", policy.Network{Host: true, Requests: []policy.RequestRule{{Host: "example.com"}}}, "Network.Requests"},
		{"ssh to nowhere", policy.Network{SSH: true}, "Network.SSH"},
		{"a secret that is short", with(func(c *policy.Credential) { c.Name, c.Secret = "OTHER", "seven77" }), "Network.Credentials[1].Secret"},
		{"a secret for every host", with(func(c *policy.Credential) { c.Name, c.Hosts = "OTHER", []string{"*:443"} }), "Network.Credentials[1].Hosts"},
		{"a file's name for authorities", policy.Network{Authorities: "/etc/ssl/corp.pem"}, "Network.Authorities"},
		{"authorities and the harness's network", policy.Network{Host: true, Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }}, "Network.Lookup"},
		{"a person to ask and the harness's network", policy.Network{Host: true, Decide: decide}, "Network.Decide"},
		{"patience and the harness's network", policy.Network{Host: true, Patience: time.Second}, "Network.Patience"},
		{"an observer and the harness's network", policy.Network{Host: true, Observe: func(policy.Connection) {}}, "Network.Observe"},
		{"limits and the harness's network", policy.Network{Host: true, Limits: policy.NetworkLimits{Bytes: 1}}, "Network.Limits"},
		{"a capture and the harness's network", policy.Network{Host: true, Capture: capture}, "Network.Capture"},
		{"datagrams and the harness's network", policy.Network{Host: true, UDP: []string{"a.example:1"}, Capture: capture}, "Network.UDP"},
		{"datagrams that nothing carries", policy.Network{UDP: []string{"a.example:1"}}, "Network.UDP"},
		{"datagrams to every port", policy.Network{Capture: capture, UDP: []string{"a.example:1", "b.example"}}, "Network.UDP[1]"},
		{"datagrams to the tool itself", policy.Network{Capture: capture, UDP: []string{"a.example:1", "Localhost.:53"}}, "Network.UDP[1]"},
		{"datagrams to a group", policy.Network{Capture: capture, UDP: []string{"224.0.0.251:5353"}}, "Network.UDP[0]"},
		{"datagrams to what is no host", policy.Network{Capture: capture, UDP: []string{"a b:1"}}, "Network.UDP[0]"},
		{"a denial that is no rule, and datagrams", policy.Network{Capture: capture, UDP: []string{"a.example:1"}, Deny: []string{"b c"}}, "Network.Deny[0]"},
		{"datagrams past a credential", policy.Network{Capture: capture, Hosts: []string{"example.com"}, UDP: []string{"a.example:1", "example.com:443"}, Credentials: []policy.Credential{secret}}, "Network.UDP[0]"},
		{"datagrams past a request rule", policy.Network{Capture: capture, Hosts: []string{"example.com"}, UDP: []string{"*:443"}, Requests: []policy.RequestRule{{Host: "example.com:443"}}}, "Network.UDP[0]"},
		{"datagrams to another host at a request rule's port", policy.Network{Capture: capture, Hosts: []string{"example.com"}, UDP: []string{"a.example:123", "media.example:400-443"}, Requests: []policy.RequestRule{{Host: "example.com:443"}}}, "Network.UDP[1]"},
		{"a host that is a URL", policy.Network{Hosts: []string{"example.com", "https://example.com/"}}, "Network.Hosts[1]"},
		{"a host with a NUL byte", policy.Network{Hosts: []string{"evil.com\x00.example.com"}}, "Network.Hosts[0]"},
		{"a host that is empty", policy.Network{Hosts: []string{""}}, "Network.Hosts[0]"},
		{"a denial that is no rule", policy.Network{Hosts: []string{"*"}, Deny: []string{"a.example", "b c"}}, "Network.Deny[1]"},
		{"port 0 of the harness", policy.Network{Loopback: []uint16{80, 0}}, "Network.Loopback[1]"},
		{"a port of the harness twice", policy.Network{Loopback: []uint16{80, 80}}, "Network.Loopback[1]"},
		{"too many ports", policy.Network{Loopback: ports}, "Network.Loopback"},
		{"too many ports to dial", policy.Network{Listen: ports}, "Network.Listen"},
		{"a port to dial that the harness has", policy.Network{Loopback: []uint16{80}, Listen: []uint16{80}}, "Network.Listen[0]"},
		{"the port of names, captured", policy.Network{Loopback: []uint16{53}, Capture: capture}, "Network.Loopback[0]"},
		{"a relative socket", policy.Network{Unix: []string{"docker.sock"}}, "Network.Unix[0]"},
		{"a socket in /proc", policy.Network{Unix: []string{"/proc/1/fd/3"}}, "Network.Unix[0]"},
		{"a socket with a NUL byte", policy.Network{Unix: []string{"/a\x00"}}, "Network.Unix[0]"},
		{"a credential without a name", with(func(c *policy.Credential) { c.Name = "" }), "Network.Credentials[1].Name"},
		{"a credential with an equals sign", with(func(c *policy.Credential) { c.Name = "A=B" }), "Network.Credentials[1].Name"},
		{"a credential twice", with(func(c *policy.Credential) {}), "Network.Credentials[1].Name"},
		{"a credential without a secret", with(func(c *policy.Credential) { c.Name, c.Secret = "B", "" }), "Network.Credentials[1].Secret"},
		{"a secret with a line break", with(func(c *policy.Credential) { c.Name, c.Secret = "B", "hidden\n" }), "Network.Credentials[1].Secret"},
		{"a credential for no host", with(func(c *policy.Credential) { c.Name, c.Hosts = "B", nil }), "Network.Credentials[1].Hosts"},
		{"a credential for what is no host", with(func(c *policy.Credential) { c.Name, c.Hosts = "B", []string{"a b"} }), "Network.Credentials[1].Hosts[0]"},
		{"a credential in no place", with(func(c *policy.Credential) { c.Name, c.Place = "B", "body" }), "Network.Credentials[1].Place"},
		{"a credential in a header without a name", with(func(c *policy.Credential) { c.Name, c.Place = "B", policy.PlaceHeader }), "Network.Credentials[1].Field"},
		{"a credential in a parameter without a name", with(func(c *policy.Credential) { c.Name, c.Place = "B", policy.PlaceQuery }), "Network.Credentials[1].Field"},
		{"a credential in an empty place", with(func(c *policy.Credential) { c.Name, c.Place = "B", "" }), "Network.Credentials[1].Place"},
		{"a secret that is long", with(func(c *policy.Credential) { c.Name, c.Secret = "OTHER", strings.Repeat("s", 4097) }), "Network.Credentials[1].Secret"},
		{"a secret for every host at every port", with(func(c *policy.Credential) { c.Name, c.Hosts = "OTHER", []string{"*"} }), "Network.Credentials[1].Hosts"},
		{"a bearer with a field", with(func(c *policy.Credential) { c.Name, c.Field = "B", "X" }), "Network.Credentials[1].Field"},
		{"a credential and no hosts", policy.Network{Credentials: []policy.Credential{secret}}, "Network.Credentials[0].Hosts"},
		{"a path with an asterisk", asks(policy.RequestRule{Host: "a.example", Paths: []string{"/v1/*"}}), "Network.Requests[1].Paths[0]"},
		{"the tool's own loopback", policy.Network{Hosts: []string{"a.example", "LocalHost.:3000"}}, "Network.Hosts[1]"},
		{"request rules and no hosts", policy.Network{Requests: []policy.RequestRule{{Host: "example.com"}}}, "Network.Requests[0].Host"},
		{"a credential for a host that is not allowed", with(func(c *policy.Credential) { c.Name, c.Hosts = "B", []string{"example.com", "other.example"} }), "Network.Credentials[1].Hosts[1]"},
		{"a credential for a port that is not allowed", policy.Network{Hosts: []string{"example.com:443"}, Credentials: []policy.Credential{{Name: "A", Secret: "a secret", Hosts: []string{"example.com:80"}, Place: policy.PlaceBearer}}}, "Network.Credentials[0].Hosts[0]"},
		{"a credential for a host that is denied", policy.Network{Hosts: []string{"*"}, Deny: []string{"*.example"}, Credentials: []policy.Credential{{Name: "A", Secret: "a secret", Hosts: []string{"a.example"}, Place: policy.PlaceBearer}}}, "Network.Credentials[0].Hosts[0]"},
		{"a request rule for a host that is not allowed", asks(policy.RequestRule{Host: "other.example"}), "Network.Requests[1].Host"},
		{"a request rule for a host that is denied, whatever Decide says", policy.Network{Deny: []string{"a.example"}, Decide: func(context.Context, policy.Request) policy.Verdict { return policy.Verdict{} }, Requests: []policy.RequestRule{{Host: "a.example"}}}, "Network.Requests[0].Host"},
		{"a request rule for what is no host", asks(policy.RequestRule{Host: "a b"}), "Network.Requests[1].Host"},
		{"a credential for a name at private addresses, as Hosts has it", private(policy.Credential{Name: "A", Secret: "a secret", Hosts: []string{"mirror.example:443@private"}, Place: policy.PlaceBearer}, "mirror.example"), "Network.Credentials[0].Hosts[0]"},
		{"a request rule for a name at private addresses, as Hosts has it", private(policy.Credential{Name: "A", Secret: "a secret", Hosts: []string{"mirror.example:443"}, Place: policy.PlaceBearer}, "mirror.example@private"), "Network.Requests[0].Host"},
		{"a method in small letters", asks(policy.RequestRule{Host: "a.example", Methods: []string{"GET", "post"}}), "Network.Requests[1].Methods[1]"},
		{"a path that is relative", asks(policy.RequestRule{Host: "a.example", Paths: []string{"v1"}}), "Network.Requests[1].Paths[0]"},
		{"a path with a query", asks(policy.RequestRule{Host: "a.example", Paths: []string{"/v1?x"}}), "Network.Requests[1].Paths[0]"},
		{"negative patience", policy.Network{Patience: -1}, "Network.Patience"},
		{"a negative limit", policy.Network{Limits: policy.NetworkLimits{Rate: -1}}, "Network.Limits.Rate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := policy.Policy{Network: tt.network}.Validate()
			fixture.SaysWhatToDo(t, err, tt.field)
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
	for name, n := range map[string]policy.Network{
		"hosts": {Hosts: []string{"example.com"}}, "a port": {Loopback: []uint16{80}}, "an observer": {Observe: func(policy.Connection) {}},
	} {
		fixture.SaysWhatToDo(t, policy.Policy{Network: n, Open: []policy.Bound{policy.BoundNetwork}}.Validate(), map[string]string{
			"hosts": "Network.Hosts", "a port": "Network.Loopback", "an observer": "Network.Observe"}[name])
	}
}

// TestNoRemedyIsRefusedInItsTurn: "localhost" is no entry of Hosts.
func TestNoRemedyIsRefusedInItsTurn(t *testing.T) {
	for field, n := range map[string]policy.Network{
		"Network.Credentials[0].Hosts[0]": {Hosts: []string{"a.example"}, Credentials: []policy.Credential{{Name: "A", Secret: "a secret", Hosts: []string{"localhost:3000"}, Place: policy.PlaceBearer}}},
		"Network.Requests[0].Host":        {Hosts: []string{"a.example"}, Requests: []policy.RequestRule{{Host: "localhost"}}},
	} {
		var wrong *policy.PolicyError
		if err := (policy.Policy{Network: n}).Validate(); !errors.As(err, &wrong) || wrong.Field != field || strings.Contains(wrong.Remedy, "Network.Hosts") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestValidateTakesASoundNetwork(t *testing.T) {
	for name, n := range map[string]policy.Network{
		"nothing":                               {},
		"an empty list":                         {Hosts: []string{}},
		"denials alone":                         {Deny: []string{"example.com"}},
		"every notation":                        {Hosts: []string{"example.com", "*.example.com", "a.example:443", "a.example:8000-8100", "10.0.0.0/8", "10.1.2.3:22", "[::1]:80", "*"}},
		"sockets with a shared net":             {Host: true, Unix: []string{"/run/a.sock"}, SSHAgent: true},
		"a credential to be decided":            {Decide: func(context.Context, policy.Request) policy.Verdict { return policy.Verdict{} }, Credentials: []policy.Credential{{Name: "A", Secret: "a secret", Hosts: []string{"a.example"}, Place: policy.PlaceBasic, Field: "user"}}},
		"datagrams":                             {Capture: func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }, UDP: []string{"a.example:123", "*.example.com:1-100", "10.0.0.0/8:500", "[2001:db8::1]:9", "*:123"}, Hosts: []string{"a.example"}, Requests: []policy.RequestRule{{Host: "a.example:443"}}},
		"an empty list of datagrams":            {UDP: []string{}},
		"ports":                                 {Loopback: []uint16{3128, 1080}, Listen: []uint16{8000}},
		"a wildcard's credential within all":    {Hosts: []string{"*"}, Credentials: []policy.Credential{{Name: "A", Secret: "a secret", Hosts: []string{"*.example.com"}, Place: policy.PlaceBearer}}},
		"guarded names at private addresses":    {Hosts: []string{"mirror.example:443@private"}, Credentials: []policy.Credential{{Name: "A", Secret: "a secret", Hosts: []string{"mirror.example:443"}, Place: policy.PlaceBearer}}, Requests: []policy.RequestRule{{Host: "mirror.example"}}},
		"a rule at every port of a host at one": {Hosts: []string{"example.com:443"}, Requests: []policy.RequestRule{{Host: "example.com"}}},
	} {
		if err := (policy.Policy{Network: n}).Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestANetworkGivenToNewIsACopy(t *testing.T) {
	full := func(text string, port uint16) policy.Network {
		return policy.Network{Hosts: []string{text}, UDP: []string{text}, Deny: []string{text}, Unix: []string{text}, Loopback: []uint16{port}, Listen: []uint16{port},
			Credentials: []policy.Credential{{Name: text, Hosts: []string{text}}}, Requests: []policy.RequestRule{{Host: text, Methods: []string{text}, Paths: []string{text}}}}
	}
	n := full("a", 1)
	c := policy.Policy{Network: n}.Clone().Network
	n.Hosts[0], n.UDP[0], n.Deny[0], n.Unix[0], n.Loopback[0], n.Listen[0] = "b", "b", "b", "b", 2, 2
	n.Credentials[0].Hosts[0], n.Requests[0].Methods[0], n.Requests[0].Paths[0] = "b", "b", "b"
	n.Credentials[0].Name, n.Requests[0].Host = "b", "b"
	if !reflect.DeepEqual(c, full("a", 1)) || !reflect.DeepEqual(n, full("b", 2)) {
		t.Errorf("the copy changed: %+v", c)
	}
}

func TestACredentialPrintsWithoutItsSecret(t *testing.T) {
	c := policy.Credential{Name: "TOKEN", Secret: "hunter two", Hosts: []string{"example.com"}, Place: policy.PlaceBearer}
	p := policy.Policy{Network: policy.Network{Credentials: []policy.Credential{c}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for _, v := range []any{c, &c, p, p.Network, p.Network.Credentials} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "hunter two") || strings.Contains(got, fmt.Sprintf("%x", "hunter two")) {
				t.Errorf("%s of %T shows it: %s", verb, v, got)
			}
		}
	}
	var said bytes.Buffer
	slog.New(slog.NewTextHandler(&said, nil)).Info("made", "policy", p, "credential", c)
	slog.New(slog.NewJSONHandler(&said, nil)).Info("made", "policy", p, "credential", c)
	text, err := xml.Marshal(c)
	if said.Write(text); err != nil || strings.Contains(said.String(), "hunter two") || strings.Count(said.String(), "TOKEN") < 3 {
		t.Errorf("logged and encoded: %s, %v", &said, err)
	}
	for _, v := range []any{c, &c, p} {
		if got, err := json.Marshal(v); err != nil || strings.Contains(string(got), "hunter two") {
			t.Errorf("%T as JSON: %s, %v", v, got, err)
		}
	}
}
