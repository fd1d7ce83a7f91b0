package gitattack

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

func TestMain(m *testing.M) { kerneltest.Main(m, kerneltest.HasUserNamespaces) }

// unprotected is the Workspace without the rules for names.
func unprotected(p *sandbox.Policy) { p.Files.Protect.Off = true }

// Without the rules each skeleton works: what the generator and its observer cannot see proves nothing.
func TestKernelGitAttackFindsEachClass(t *testing.T) {
	kerneltest.Heavy(t)
	eachSkeleton(t, kerneltest.Ordinary, func(r *runner, k skeleton) {
		r.policy = workspace(unprotected)
		if f := r.carryOut(unchanged(r.at(k.fixture), k, 1)); f == nil {
			r.t.Errorf("the attack does not work without rules, or is not seen; the tool said:\n%s", r.said)
		} else {
			r.t.Logf("%s: %s", f.what, f.text)
		}
	})
}

// With the rules none works.
func TestKernelGitAttackIsHeld(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		eachSkeleton(t, as, isHeld)
	})
}

func isHeld(r *runner, k skeleton) {
	s := unchanged(r.at(k.fixture), k, 1)
	if f := r.carryOut(s); f != nil {
		r.t.Errorf("%s: %s\n%s%s", f.what, f.text, s.describe(r.at(k.fixture)), r.said)
	}
}

func eachSkeleton(t *testing.T, as kerneltest.User, body func(r *runner, k skeleton)) {
	kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.Command("git"))
		r := newRunner(t)
		for i, k := range skeletons {
			if i%kerneltest.Amount(t, 4, 2, 1) != 0 {
				continue
			}
			t.Run(k.name, func(t *testing.T) {
				r.t = t
				body(r, k)
			})
		}
	})
}
