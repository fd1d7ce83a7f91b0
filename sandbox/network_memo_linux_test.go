package sandbox

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/runner"
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
	wired := func() compile.Input {
		s := &runner.Sandbox{Policy: Policy{Network: n}}
		in := keepableLike()
		if err := fillNetwork(s, &in, nil); err != nil {
			t.Fatal(err)
		}
		return in
	}
	in := wired()
	if text := fmt.Sprintf("%#v", in); strings.Contains(text, "hunter two") || strings.Contains(text, "TOKEN") {
		t.Errorf("the input has the secret: %s", text)
	}
	if !reflect.DeepEqual(in.Policy.Network, Network{}) || !in.NetConfig.Proxied || !in.NetConfig.EndsTLS || !in.NetConfig.Captures {
		t.Errorf("left of the network: %+v, wired as %+v", in.Policy.Network, in.NetConfig)
	}
	if !remembered(t, new(memo), in, wired()) {
		t.Error("two equal networks were compiled twice")
	}
	other := wired()
	other.NetConfig.Loopback = []uint16{82}
	if remembered(t, new(memo), in, other) {
		t.Error("another port, and it was not compiled anew")
	}
}

// TestASandboxPrintsNothingThatItHolds: neither a secret, nor the harness's
// environment, nor the tool's, when somebody logs a sandbox, a command, or what has one.
func TestASandboxPrintsNothingThatItHolds(t *testing.T) {
	t.Setenv("OF_THE_HARNESS", "hunter three")
	s := &Sandbox{ready: &runner.Sandbox{Env: new(runner.FilteredEnv), Policy: Policy{
		Env: Env{Set: map[string]string{"OF_THE_TOOL": "hunter four"}},
		Network: Network{
			Hosts:       []string{"a.example"},
			Credentials: []policy.Credential{{Name: "TOKEN", Secret: "hunter two", Hosts: []string{"a.example"}, Place: policy.PlaceBearer}},
		},
	}}}
	var err error
	if s.ready.Networks, err = runner.NewNetworks(&s.ready.Policy.Network); err != nil {
		t.Fatal(err)
	}
	s.ready.Env.Of(s.ready.Policy.Env)
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
	if text := fmt.Sprintf("%+v %#v", s.ready.Networks, s.ready.Policy); strings.Contains(text, "hunter two") {
		t.Errorf("the secret is not behind a function: %s", text)
	}
}
