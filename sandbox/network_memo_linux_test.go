package sandbox

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestAPlanHasNoSecretAndNoFunction: what decides a plan is kept, compared and
// printed.
func TestAPlanHasNoSecretAndNoFunction(t *testing.T) {
	n := Network{
		Hosts: []string{"a.example"}, Patience: time.Second, Loopback: []uint16{80}, Listen: []uint16{81},
		Credentials: []Credential{{Name: "TOKEN", Secret: "hunter two", Hosts: []string{"a.example"}, Place: PlaceBearer}},
		Decide:      func(context.Context, Request) Verdict { return Verdict{} },
		Observe:     func(Connection) {},
		Capture:     func(*os.File, CaptureGate) (func(), error) { return nil, nil },
	}
	wired := func() input {
		s := &Sandbox{policy: Policy{Network: n}}
		in := keepableLike()
		if err := s.wire(&in); err != nil {
			t.Fatal(err)
		}
		return in
	}
	in := wired()
	if text := fmt.Sprintf("%#v", in); strings.Contains(text, "hunter two") || strings.Contains(text, "TOKEN") {
		t.Errorf("the input has the secret: %s", text)
	}
	if !reflect.DeepEqual(in.policy.Network, Network{}) || !in.wiring.gated || !in.wiring.trusts || !in.wiring.captured {
		t.Errorf("left of the network: %+v, wired as %+v", in.policy.Network, in.wiring)
	}
	if !remembered(t, new(memo), in, wired()) {
		t.Error("two equal networks were compiled twice")
	}
	other := wired()
	other.wiring.loopback = []uint16{82}
	if remembered(t, new(memo), in, other) {
		t.Error("another port, and it was not compiled anew")
	}
}

// TestWithoutANamespaceTheProxiesAreAllThatIsReached, by the guard and by Landlock.
func TestWithoutANamespaceTheProxiesAreAllThatIsReached(t *testing.T) {
	bare := func(n Network, may ...Bound) input {
		return networked(n, func(in *input) {
			in.facts.Namespaces = no("namespaces")
			in.policy.May = append([]Bound{BoundFiles, BoundProcesses}, may...)
		})
	}
	p, err := compile(bare(Network{Hosts: []string{"a.example"}, Loopback: []uint16{5432}}))
	if err != nil {
		t.Fatal(err)
	}
	text := p.String()
	for _, want := range []string{"and of connections, which may go to [127.0.0.1:5432 127.0.0.1:1 127.0.0.1:2] alone", "3 port rules"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for name, n := range map[string]Network{
		"a server inside":   {Listen: []uint16{80}},
		"an agent":          {SSHAgent: true},
		"a capture of TCP":  {Capture: func(*os.File, CaptureGate) (func(), error) { return nil, nil }},
		"no listener's use": {Hosts: []string{"a.example"}},
	} {
		in := bare(n)
		if name == "no listener's use" {
			in.facts.Notify = no("notify")
			in.policy.Files.Protect.Off = true
		}
		if _, err := compile(in); refusals(t, err) != "network" {
			t.Errorf("%s: %v", name, err)
		}
		in.policy.May = append(in.policy.May, BoundNetwork)
		p, err := compile(in)
		if err != nil {
			t.Errorf("%s, although it may be missing: %v", name, err)
		}
		for _, h := range p.Holdings {
			if h.Bound == BoundNetwork && len(h.Notes) == 0 {
				t.Errorf("%s: nothing says that it is missing", name)
			}
		}
	}
}
