package sandbox

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAPlanHasNoSecretAndNoFunction: what decides a plan is kept, compared and
// printed.
func TestAPlanHasNoSecretAndNoFunction(t *testing.T) {
	n := Network{
		Hosts: []string{"a.example"}, Patience: time.Second, Loopback: []uint16{80}, Listen: []uint16{81},
		Credentials: []policy.Credential{{Name: "TOKEN", Secret: "hunter two", Hosts: []string{"a.example"}, Place: policy.PlaceBearer}},
		Decide:      func(context.Context, policy.Request) policy.Verdict { return policy.Verdict{} },
		Observe:     func(policy.Connection) {},
		Capture:     func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil },
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

// TestWithoutANamespaceTheProxiesAreAllThatIsReached, by the supervisor and by Landlock.
func TestWithoutANamespaceTheProxiesAreAllThatIsReached(t *testing.T) {
	bare := func(n Network, may ...Bound) input {
		return networked(n, func(in *input) {
			in.facts.Namespaces = no("namespaces")
			in.policy.May = append([]Bound{policy.BoundFiles, policy.BoundProcesses}, may...)
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
		"a capture of TCP":  {Capture: func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }},
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
		in.policy.May = append(in.policy.May, policy.BoundNetwork)
		p, err := compile(in)
		if err != nil {
			t.Errorf("%s, although it may be missing: %v", name, err)
		}
		for _, h := range p.Holdings {
			if h.Bound == policy.BoundNetwork && len(h.Notes) == 0 {
				t.Errorf("%s: nothing says that it is missing", name)
			}
		}
	}
}

// TestASandboxPrintsNothingThatItHolds: neither a secret, nor the harness's
// environment, nor the tool's, when somebody logs a sandbox, a command, or what has one.
func TestASandboxPrintsNothingThatItHolds(t *testing.T) {
	t.Setenv("OF_THE_HARNESS", "hunter three")
	s := &Sandbox{env: new(filteredEnv), policy: Policy{
		Env: Env{Set: map[string]string{"OF_THE_TOOL": "hunter four"}},
		Network: Network{
			Hosts:       []string{"a.example"},
			Credentials: []policy.Credential{{Name: "TOKEN", Secret: "hunter two", Hosts: []string{"a.example"}, Place: policy.PlaceBearer}},
		},
	}}
	if err := s.openGate(); err != nil {
		t.Fatal(err)
	}
	s.env.of(s.policy.Env)
	c := s.Command("/bin/true")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{s, c, struct{ S *Sandbox }{s}, struct{ s *Sandbox }{s}, struct{ c *Cmd }{c}} {
			for _, held := range []string{"hunter two", "hunter three", "hunter four"} {
				got := fmt.Sprintf(verb, v)
				_, hidden := v.(struct{ s *Sandbox }) // of a field like this fmt asks nobody: it follows the pointer where it does not know the verb
				if strings.Contains(got, held) && !(hidden && held == "hunter four") {
					t.Errorf("%s of %T shows %q", verb, v, held)
				}
			}
		}
	}
	if text := fmt.Sprintf("%+v %#v", s.gate, s.policy); strings.Contains(text, "hunter two") {
		t.Errorf("the secret is not behind a function: %s", text)
	}
}

// TestWhatPassesOfTheEnvironmentHasNoSecret, under whatever name and in whatever text.
func TestWhatPassesOfTheEnvironmentHasNoSecret(t *testing.T) {
	t.Setenv("ALIAS", "hunter/two")
	s := &Sandbox{env: new(filteredEnv), policy: Policy{
		Env: Env{Pass: []string{"ALIAS"}, Set: map[string]string{"INDEX": "https://u:hunter%2Ftwo@a.example/", "OTHER": "hunter three"}},
		Network: Network{
			Hosts:       []string{"a.example"},
			Credentials: []policy.Credential{{Name: "TOKEN", Secret: "hunter/two", Hosts: []string{"a.example"}, Place: policy.PlaceBearer}},
		},
	}}
	s.wiring = wireProfile(s.policy.Network)
	if err := s.openGate(); err != nil {
		t.Fatal(err)
	}
	c := s.Command("/bin/true")
	defer c.run.unplug()
	env := map[string]string{}
	for _, v := range c.Environ() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	p := env["TOKEN"]
	if p == "" || env["ALIAS"] != p || env["INDEX"] != "https://u:"+p+"@a.example/" || env["OTHER"] != "hunter three" {
		t.Errorf("%q", env)
	}
	c.Env = []string{"MINE=hunter/two"}
	if got := c.Environ(); len(got) == 0 || got[0] != "MINE=hunter/two" {
		t.Errorf("the caller's own: %q", got)
	}
}
