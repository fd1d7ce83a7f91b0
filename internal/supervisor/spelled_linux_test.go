package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelLongSpellings: where case is folded a protected name has spellings of any length. None is cut, so that it, with what lies behind it
// in the supervisor's memory, were another name.
func TestKernelLongSpellings(t *testing.T) {
	kerneltest.Long(t)
	const invisible = "\u200c"
	long := map[string]string{
		".gitmodules, with what folding leaves out": ".gitmodule" + strings.Repeat(invisible, 10) + "s",
		".gitmodules and dots":                      ".GITMODULES" + strings.Repeat(".", 60),
		"a .git file and blanks":                    ".git" + strings.Repeat(" ", 60),
		"a .git file, one byte too long":            ".git" + strings.Repeat(" ", 28),
	}
	const attack = `write() { echo "gitdir: ../.git/modules/m" >"$1"; printf '[submodule "x"]\n\tpath = x\n' >"$1"; : >"../x$RANDOM"; }; mkdir -p w .git/modules/m; cd w; write "$NAME"; for i in 1 2 3; do (write "$NAME"); done; ls -A`
	for user, uid := range users(t) {
		for what, name := range long {
			t.Run(what+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, `git init -q .`)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", attack}, Env: []string{"NAME=" + name}})
				if list, err := os.ReadDir(filepath.Join(dir, "w")); err != nil || len(list) > 0 {
					t.Errorf("%v, %v\n%s", list, err, out)
				}
			})
		}
		t.Run("a short name after a long one "+user, func(t *testing.T) {
			dir, rules := workspace(t, uid)
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", `git init -q .; : >` + strings.Repeat("a", 200) + `
				printf '[submodule "x"]\n\tpath = x\n' >.gitmodules; mkdir -p w .git/modules/m; echo "gitdir: ../.git/modules/m" >w/.git; : >x; [ -s .gitmodules ]; [ -s w/.git ]`}})
			if code != 0 {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
		t.Run("a long spelling's lock "+user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			name := ".gitmodules" + strings.Repeat(invisible, 70)
			script(t, dir, uid, `git init -q .; echo mine >"`+name+`.lock"; echo '[submodule "x"]' >"`+name+`"`)
			out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `printf '[submodule "x"]\n\tpath = x\n' >n; mv n "$NAME"`}, Env: []string{"NAME=" + name}})
			if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != "[submodule \"x\"]\n" {
				t.Errorf("%q, %v\n%s", b, err, out)
			}
		})
	}
}
