package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAnEnvWithoutTheProxiesIsNotedUnlessPacketsAreCaptured: a capture that this host
// cannot have leaves the tool nothing else.
func TestAnEnvWithoutTheProxiesIsNotedUnlessPacketsAreCaptured(t *testing.T) {
	for name, c := range map[string]struct {
		steps []plan.Step
		noted bool
	}{
		"captured":                    {[]plan.Step{{By: plan.Capture}}, false},
		"a capture that is not there": {nil, true},
	} {
		of, err := NewNetworks(&policy.Network{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := of.New(compile.NetConfig{Proxied: true, Captures: true}, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &Run{sandbox: &Sandbox{Plan: plan.Plan{Steps: c.steps}}, net: n}
		r.noteOwnEnv([]string{"A=b"})
		if notes := n.Summary().Notes; len(notes) > 0 != c.noted {
			t.Errorf("%s: %q", name, notes)
		}
	}
}

// TestWhatPassesOfTheEnvironmentHasNoSecret, under whatever name and in whatever text.
func TestWhatPassesOfTheEnvironmentHasNoSecret(t *testing.T) {
	t.Setenv("ALIAS", "hunter/two")
	s := &Sandbox{Env: new(FilteredEnv), Policy: policy.Policy{
		Env: policy.Env{Pass: []string{"ALIAS"}, Set: map[string]string{"INDEX": "https://u:hunter%2Ftwo@a.example/", "OTHER": "hunter three"}},
		Network: policy.Network{
			Hosts:       []string{"a.example"},
			Credentials: []policy.Credential{{Name: "TOKEN", Secret: "hunter/two", Hosts: []string{"a.example"}, Place: policy.PlaceBearer}},
		},
	}}
	s.NetConfig = darwin.NetConfig(s.Policy.Network)
	var err error
	if s.Networks, err = NewNetworks(&s.Policy.Network); err != nil {
		t.Fatal(err)
	}
	r := New(context.Background(), s, nil, func() Tool { return Tool{Path: "/bin/true"} })
	c := r.Command()
	defer r.made().Close()
	env := map[string]string{}
	for _, v := range r.Environ() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	p := env["TOKEN"]
	if p == "" || env["ALIAS"] != p || env["INDEX"] != "https://u:"+p+"@a.example/" || env["OTHER"] != "hunter three" {
		t.Errorf("%q", env)
	}
	c.Env = []string{"MINE=hunter/two"}
	if got := r.Environ(); len(got) == 0 || got[0] != "MINE=hunter/two" {
		t.Errorf("the caller's own: %q", got)
	}
}
