package sandbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// TestKernelNoExecve: what is in such a bind is not started, can be read, and is
// started again in a bind inside that does not say so. Without Landlock, and with
// Nest, which keeps it off, the policy is refused.
func TestKernelNoExecve(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			host := layoutHost(t)
			program, err := os.ReadFile("/usr/bin/true")
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []string{"tree/program", "tree/sub/program"} {
				if err := os.WriteFile(filepath.Join(host, p), program, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, noExecve := range []bool{true, false} {
				p := noExecvePolicy(host, noExecve)
				out, err := runLayout(p, "/b/program && echo started; head -c 4 /b/program >/dev/null && echo read; /b/sub/program && echo inside")
				want := "started\nread\ninside"
				if noExecve {
					want = "read\ninside"
				}
				if err != nil || !strings.HasSuffix(out, want) || noExecve == strings.Contains(out, "started") {
					t.Errorf("NoExecve %v: %v %q", noExecve, err, out)
				}
				p.Root.Nest = true
				_, err = runLayout(p, "true")
				if unsupported := (*sandbox.UnsupportedError)(nil); noExecve != errors.As(err, &unsupported) {
					t.Errorf("NoExecve %v with Nest: %v", noExecve, err)
				}
			}
		})
	})
}

func TestKernelNoExecveNeedsLandlock(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.InChild(t, kerneltest.Child{Without: []kerneltest.Feature{kerneltest.Landlock}}, func(t *testing.T) {
		if _, err := sandbox.New(noExecvePolicy(layoutHost(t), true)); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("without Landlock: %v", err)
		}
	})
}

func noExecvePolicy(host string, noExecve bool) sandbox.Policy {
	return sandbox.Policy{
		Root: &rootfs.Layout{Entries: append(systemEntries(),
			rootfs.Bind{Source: filepath.Join(host, "tree"), At: "/b", NoExecve: noExecve},
			rootfs.Bind{Source: filepath.Join(host, "tree/sub"), At: "/b/sub"})},
		Files: sandbox.Files{Protect: policy.Protect{Off: true}},
	}
}

// TestKernelReportHasThePolicysNotes: as they are, whatever else is remembered of
// a policy that differs in them alone.
func TestKernelReportHasThePolicysNotes(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		for _, why := range []string{"first", "second"} {
			p := sandbox.Policy{Files: sandbox.Files{Read: []string{"/usr"}}, Notes: []policy.Note{{At: "a:1", Rule: "(r)", Class: "exact"}, {At: "a:2", Rule: "(s)", Class: "other", Why: why}}}
			s, err := sandbox.New(p)
			if err != nil {
				t.Fatal(err)
			}
			p.Notes[1].Why = "changed"
			cmd := s.Command("/usr/bin/true")
			if err := cmd.Run(); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			r := cmd.Report()
			text, err := r.JSON()
			if err != nil || len(r.Notes) != 2 || r.Notes[1].Why != why || !strings.Contains(string(text), `"why": "`+why+`"`) {
				t.Errorf("%v %s", err, text)
			}
			if s := r.String(); !strings.Contains(s, "note: a:2 (s): other: "+why) || strings.Contains(s, "a:1") {
				t.Error(s)
			}
		}
	})
}
