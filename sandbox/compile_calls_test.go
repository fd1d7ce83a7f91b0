package sandbox

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/rlimit"
)

// The kernel counts no processes for uid 0, and a pid namespace's limit is 301 at
// least: a smaller NProc is not held, and the plan says so.
func TestNProcOfRootIsHeldOrLost(t *testing.T) {
	const refused, held = "resources", ""
	for _, tt := range []struct {
		name   string
		change func(*host.Facts)
		nproc  *rlimit.Limit
		want   string
	}{
		{"an ordinary user's", func(*host.Facts) {}, rlimit.At(20), held},
		{"root's, by the pid namespace", rootWithUserNS, rlimit.At(1000), held},
		{"root's, below what a pid namespace can be limited to", rootWithUserNS, rlimit.At(20), refused},
		{"root's, at what a pid namespace can be limited to", rootWithUserNS, rlimit.At(298), held},
		{"root's, before Linux 6.14", func(f *host.Facts) { rootWithUserNS(f); f.Kernel = "6.12.0" }, rlimit.At(1000), refused},
		{"root's that the policy does not name", rootWithUserNS, nil, held},
		{"root's that is unlimited", rootWithUserNS, rlimit.At(rlimit.Unlimited), held},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := newHost()
			tt.change(&facts)
			_, err := compile(inputOf(workspaceLike(), facts, Policy{Limits: Limits{Rlimits: rlimit.Limits{NProc: tt.nproc}}}))
			if got := refusals(t, err); got != tt.want {
				t.Errorf("refused %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

func rootWithUserNS(f *host.Facts) { f.UID, f.GID = 0, 0 }
