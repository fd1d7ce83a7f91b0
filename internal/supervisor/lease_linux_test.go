package supervisor

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelIndexWithoutLeases has the kernel refuse leases to the supervisor, as it does on NFS, 9p and Ceph: an index is judged and
// copied then.
func TestKernelIndexWithoutLeases(t *testing.T) {
	kerneltest.Long(t)
	const repo = `git init -q .; echo a >a; git add a; git commit -qm one; `
	cases := []struct {
		name, prepare, inside, outside string
		fails                          bool
	}{
		{"git works", ``, repo + `for v in 2 3 4; do git update-index --index-version $v; git add -N .; done; git update-index --split-index; echo y >y; git add y; git commit -qm y; git update-index --no-split-index; echo z >>a; git stash -q; git stash pop -q; git commit -qam z; git status --porcelain | wc -l | grep -qx 0; [ ! -e .git/index.lock ]; ! ls -A .git | grep holdfast`,
			`git fsck && git status --porcelain | wc -l | grep -qx 0 && [ "$(stat -c %a .git/index)" = 644 ]`, false},
		{"a large index", `seq 1 9000 | xargs -n 1000 touch`, `git init -q .; git add .; git commit -qm one; echo x >1; git commit -qam two; [ $(stat -c %s .git/index) -gt 200000 ]`, `git fsck && git status --porcelain | wc -l | grep -qx 0`, false},
		{"a forged index", repo, `mkdir -p XXXX/hooks; : >XXXX/hooks/post-checkout; git add XXXX; sed 's,XXXX/,.git/,g' .git/index >i; rm -r XXXX; cp i k; mv i .git/index && exit 0; set -C; cat k >.git/index.lock; mv .git/index.lock .git/index`,
			`rm -f .git/index.lock; git checkout .; ! ls -A .git/hooks | grep checkout && ! ls -A .git | grep holdfast`, true},
		{"an index that stays open", repo, `cp .git/index c; set -C; exec 5>.git/index.lock; cat c >&5; mv .git/index.lock .git/index || exit 1; printf XXXXXXXXXXXX >&5; exit 1`, `git status && git fsck && ! grep XXXX .git/index`, true},
		{"an index with a second name", repo, `cp .git/index c; ln c d; mv c .git/index`, `git status && [ -e c ]`, true},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, c.prepare)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, NoLease: true, Argv: []string{"bash", "-ec", c.inside}})
				if (code != 0) != c.fails || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
				script(t, dir, uid, c.outside)
			})
		}
	}
}
