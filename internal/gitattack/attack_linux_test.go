package gitattack

import (
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

func TestMain(m *testing.M) { kerneltest.Main(m) }

// unprotected is the Workspace without the rules for names.
func unprotected(p *sandbox.Policy) { p.Files.Protect.Off = true }

// Without the rules each skeleton works: what the generator and its observer cannot see proves nothing.
func TestKernelGitAttackFindsEachClass(t *testing.T) {
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
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		eachSkeleton(t, as, isHeld)
	})
}

func isHeld(r *runner, k skeleton) {
	if unheld[k.name] && os.Getenv("HOLDFAST_GITATTACK") == "" {
		return
	}
	s := unchanged(r.at(k.fixture), k, 1)
	if f := r.carryOut(s); f != nil {
		r.t.Errorf("%s: %s\n%s%s", f.what, f.text, s.describe(r.at(k.fixture)), r.said)
	}
}

func eachSkeleton(t *testing.T, as kerneltest.User, body func(r *runner, k skeleton)) {
	kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.Command("git"))
		r := newRunner(t)
		for _, k := range skeletons {
			t.Run(k.name, func(t *testing.T) {
				r.t = t
				body(r, k)
			})
		}
	})
}

// unheld are the skeletons that the present rules do not hold.
var unheld = map[string]bool{
	"F2 bent file": true, "F4 embedded repository": true, "F4 embedded repository below": true, "F4 embedded repository in a package": true, "F4 bare layout": true,
	"F4 bare layout's hook": true, "F4 separate directory": true, "F6 log": true, "F6 state": true, "F6 directory": true, "F7 work tree through a link": true,
	"F8 worktree's module": true, "F9 address through proc": true, "F16 module's remotes": true, "F16 module's branches": true, "F17 forged rebase": true,
	"F17 rebase in progress": true, "F18 hooksPath's target": true, "F18 include's target": true, "index with forged names": true, "options of a forged mail": true,
	"strategy of a forged rebase": true, "strategy of a forged cherry-pick": true, "rerere copies a secret": true, "worktree's place": true,
	"shape: HEAD and commondir alone":         true,
	"shape: commondir in a .git directory":    true,
	"shape: objects and refs are files":       true,
	"shape: objects is a file":                true,
	"shape: HEAD is a link":                   true,
	"shape: objects and refs are links":       true,
	"shape: made executable last":             true,
	"shape: links lead to it later":           true,
	"shape: HEAD is filled last":              true,
	"shape: renamed into its place":           true,
	"shape: a kept configuration":             true,
	"shape: git init around a hook":           true,
	"shape: a repository's directory renamed": true,
	"shape: without HEAD meanwhile":           true,
	"shape: another name without HEAD":        true,
	"shape: refs renamed meanwhile":           true,
}
