package sandbox

import (
	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// planInput is what New would give compile, for a policy on a made-up host.
func planInput(l resolve.Tree, facts host.Facts, p Policy) compile.Input {
	inherited := rlimit.Values{}
	for r := range inherited {
		inherited[r] = rlimit.Limit{Soft: rlimit.Unlimited, Hard: rlimit.Unlimited}
	}
	return compile.Input{
		Policy: p, Tree: l, Facts: facts, Devices: []string{"/dev/null", "/dev/tty"}, Rlimits: inherited, Arch: seccomp.AMD64,
		List: func(string) []resolve.Entry { return nil },
	}
}
