package compile

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestTheToolOpensNoTerminal: where the supervisor opens terminals for the tool, init's layer grants them and the tool's does not, which grants all else that
// init's does. In a session, too. A policy that shows the root grants none to init.
func TestTheToolOpensNoTerminal(t *testing.T) {
	whole := resolve.Tree{Entries: append([]resolve.Entry{{Path: "/", Kind: pathrule.Read, Dir: true}}, fixture.WorkspaceTree().Entries...)}
	for _, tt := range []struct {
		name    string
		tree    resolve.Tree
		network policy.Network
		want    bool
	}{
		{"a workspace", fixture.WorkspaceTree(), policy.Network{}, true},
		{"the host's network", fixture.WorkspaceTree(), policy.Network{Host: true}, true},
		{"the whole root", whole, policy.Network{}, false},
		{"nothing is written", fixture.ReadOnlyTree(), policy.Network{}, false},
	} {
		facts := fixture.Host()
		fixture.WithoutNamespaces(&facts)
		in := inputOf(tt.tree, facts, policy.Policy{Network: tt.network, May: []policy.Bound{policy.BoundFiles, policy.BoundProcesses}})
		in.Terminals = []string{resolve.PTYs, "/dev/ptmx"}
		made, err := Plan(in)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		for _, p := range []plan.Plan{made, made.ForSession()} {
			var inits, tools []string
			for _, s := range p.Steps {
				restrict, ok := s.Do.(plan.RestrictFiles)
				if !ok || restrict.Ruleset.HandledFS()&accessOpen != accessOpen {
					continue
				}
				list := &inits
				if s.In == plan.Tool {
					list = &tools
				}
				for _, r := range restrict.Ruleset.Paths {
					if r.Access&accessOpen != 0 {
						*list = append(*list, r.Path)
					}
				}
			}
			if got := slices.Contains(inits, resolve.PTYs); got != tt.want {
				t.Errorf("%s: init's layer grants terminals: %v", tt.name, got)
			}
			if (len(tools) > 0) != tt.want {
				t.Errorf("%s: the tool's layer has %q", tt.name, tools)
			}
			for _, p := range tools {
				if pathrule.Within(resolve.PTYs, p) || pathrule.Within(p, resolve.PTYs) || p == "/dev/ptmx" {
					t.Errorf("%s: the tool's layer grants %s", tt.name, p)
				}
			}
			for _, p := range inits {
				if tt.want && !slices.Contains(in.Terminals, p) && !pathrule.WithinAny(p, tools) {
					t.Errorf("%s: the tool's layer does not grant %s", tt.name, p)
				}
			}
		}
	}
}
