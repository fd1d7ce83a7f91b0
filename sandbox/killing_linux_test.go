package sandbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// TestKernelAFilterThatKillsIsAnError: systemd's SystemCallFilter= kills the process that makes a call which it leaves out. The harness
// is none: New says what is in the way, whatever the policy accepts. A filter that kills for another call is in no one's way.
func TestKernelAFilterThatKillsIsAnError(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		for call, refused := range map[string]bool{"seccomp": true, "landlock_create_ruleset": true, "mount": true, "pidfd_getfd": true, "keyctl": true, "acct": false, "sched_setaffinity": false} {
			t.Run(call, func(t *testing.T) {
				kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
					arch, err := seccomp.Native()
					if err != nil {
						t.Fatal(err)
					}
					filter := seccomp.Filter{Default: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{call}, Action: seccomp.KillProcess}}}
					program, err := filter.Compile(arch)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := program.Load(seccomp.LoadOptions{}); err != nil {
						t.Fatal(err)
					}
					for name, p := range map[string]Policy{"default": workspaceHere(t), "InContainer": workspaceHere(t).InContainer()} {
						s, err := New(p)
						if err == nil {
							if out, err := s.Command("sh", "-c", "echo written >f; cat f").CombinedOutput(); string(out) != "written\n" {
								t.Errorf("%s: %s, %v", name, out, err)
							}
							s.Close()
						}
						if refused != errors.Is(err, errors.ErrUnsupported) || refused && !strings.Contains(err.Error(), "kills a process that makes "+call+"(2)") || !refused && err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
					if got := Probe().Around.Killing; (got != "") != refused {
						t.Errorf("the call is %q", got)
					}
				})
			})
		}
	})
}
