package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/protected"
)

// self is the user of the test process.
var self = uint32(os.Getuid())

// users returns whom a kernel test runs as: the current user, and of root where All tests are asked for an
// ordinary one too.
func users(t testing.TB) map[string]uint32 {
	switch {
	case self != 0:
		return map[string]uint32{"as an ordinary user": self}
	case !kerneltest.All(t):
		return map[string]uint32{"as root": 0}
	}
	return map[string]uint32{"as root": 0, "as an ordinary user": 65534}
}

// workspace makes a directory that uid owns, reachable by it, and rules for it.
func workspace(t testing.TB, uid uint32) (string, Rules) {
	t.Helper()
	base, err := os.MkdirTemp("", "supervisor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	dir := filepath.Join(base, "ws")
	for _, d := range []string{dir, filepath.Join(base, "out")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := chown(d, uid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, Rules{Roots: []Root{{Path: dir, Fold: true}}, Names: protected.Patterns()}
}

// chown gives a file to a user whose group has the same number, or leaves it with the current user, who has made it.
func chown(path string, uid uint32) error {
	if uid == self {
		return nil
	}
	return os.Chown(path, int(uid), int(uid))
}

// script runs a bash script in dir without a supervisor, as the user before the run would have.
func script(t testing.TB, dir string, uid uint32, text string) {
	t.Helper()
	out, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", text}})
	if code != 0 {
		t.Fatalf("preparation: exit %d\n%s", code, out)
	}
}

// guarded is written apart from the rules: what no run may have changed.
var guarded = regexp.MustCompile(`(^|/)(\.git/(hooks|config|config\.worktree|commondir|branches/.+|remotes/.+|info/attributes)|` +
	`\.bashrc|\.vscode|\.envrc|\.idea|\.mcp\.json)(/|$)`)

// protectedFiles lists what is guarded below dir, and everything named .git or above a guarded name that is no plain
// directory, with mode, link text and content.
func protectedFiles(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		above := (d.Name() == ".git" || strings.HasSuffix(rel, ".git/info") || strings.Contains(rel, ".git/modules")) && !d.IsDir()
		if !guarded.MatchString(rel) && !above {
			return nil
		}
		link, _ := os.Readlink(p)
		content := []byte{}
		if info.Mode().IsRegular() {
			content, _ = os.ReadFile(p)
		}
		fmt.Fprintf(&b, "%s %v %s %q\n", rel, info.Mode(), link, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hooked is a repository with everything that must stay as it is.
const hooked = `git init -q . && mkdir -p .git/hooks .git/info sub/.git/hooks .vscode && echo h >.git/hooks/pre-commit && echo old >.bashrc &&
echo '{}' >.vscode/tasks.json && chmod 644 .git/hooks/pre-commit && echo x >x && mkdir d && echo y >d/y`

func TestKernelRefused(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	cases := []struct{ name, script string }{
		{"a hook is created", `echo evil >.git/hooks/post-commit`},
		{"a hook is appended to", `echo evil >>.git/hooks/pre-commit`},
		{"an absent name is created", `echo evil >.envrc`},
		{"an absent name is touched", `touch .mcp.json`},
		{"an absent directory is made", `mkdir .idea`},
		{"a name deep in the tree is made", `mkdir -p p/q/r; echo evil >p/q/r/.bashrc`},
		{"a file beneath a protected directory", `echo evil >.vscode/tasks.json; echo evil >.vscode/new; mkdir .vscode/d`},
		{"a hook in a repository below", `echo evil >sub/.git/hooks/pre-push`},
		{"the configuration is written in place", `echo '[core] pager = evil' >>.git/config`},
		{"the worktree configuration", `echo '[core] pager = evil' >.git/config.worktree; echo .. >.git/commondir; echo '* filter=x' >.git/info/attributes`},
		{"a configuration that runs a program is renamed into place", `(cat .git/config; echo '[core]'; echo ' fsmonitor = evil') >n; mv n .git/config`},
		{"mv .git/x .git/hooks/pre-commit", `echo evil >.git/x; mv .git/x .git/hooks/pre-commit`},
		{"a hook is renamed away", `mv .git/hooks/pre-commit z; mv .git/hooks z`},
		{"a hook is removed", `rm -f .git/hooks/pre-commit; rm -rf .git/hooks .vscode`},
		{"a hook is made executable", `chmod +x .git/hooks/pre-commit`},
		{"the mode through a link, with a slash and without", `ln -s .git/hooks z; chmod 700 z; chmod 700 z/; chmod 700 z/.; ln -s z y; chmod 700 y/; "$SELF" chmodlink z/; ln -s d w; ln -s ../.git/hooks d/v; "$SELF" chmodlink w/v/`},
		{"a hook is truncated", `truncate -s 0 .git/hooks/pre-commit; : >.git/hooks/pre-commit`},
		{"a hard link to a hook", `ln .git/hooks/pre-commit z; echo evil >z`},
		{"a hard link onto a name", `ln x .envrc`},
		{"a symbolic link at a name", `ln -s x .envrc; ln -s d .idea; ln -s x .git/hooks/post-merge`},
		{"a symbolic link to a hook is written through", `ln -s .git/hooks/pre-commit z; echo evil >z; ln -s .git/hooks z2; echo evil >z2/post-commit`},
		{"a dangling symbolic link makes a hook", `ln -s .git/hooks/post-commit z; echo evil >z; ln -s ../.envrc d/z; echo evil >d/z`},
		{"a directory with planted hooks becomes .git", `mkdir -p new/hooks sub2; echo evil >new/hooks/pre-commit; mv new sub2/.git`},
		{"a .git directory is renamed away and replaced", `mv .git old; mv sub/.git sub/old`},
		{"a .git file", `mkdir w; echo 'gitdir: /evil' >w/.git; ln -s ../d w/.git; ln x w/.git; mv x w/.git`},
		{"a link above a protected name", `mkdir -p w/.git e; ln -s ../../e w/.git/info; ln -s ../../e w/.git/modules; mkdir w/.git/modules; ln -s ../../../e w/.git/modules/m`},
		{"through /proc/self/root and /proc/self/cwd", `echo evil >/proc/self/root$PWD/.envrc; echo evil >/proc/self/cwd/.envrc; echo evil >/proc/$$/cwd/.git/hooks/z`},
		{"by other spellings", `echo evil >.//.envrc; echo evil >d/../.envrc; echo evil >"$PWD/d/.././/.git/./hooks/z"; mkdir .idea/ .idea//`},
		{"through a descriptor of the directory", `exec 5<.git/hooks; echo evil >/proc/self/fd/5/z; echo evil >/dev/fd/5/z`},
		{"through a descriptor of the file", `exec 5<.git/hooks/pre-commit; echo evil >/proc/self/fd/5; echo evil >/dev/fd/5; chmod +x /proc/self/fd/5`},
		{"a FIFO, a socket", `mkfifo .envrc; "$SELF" bind .idea`},
		{"an exchange", `echo evil >z; "$SELF" exchange z .git/hooks/pre-commit; "$SELF" exchange .git/hooks/pre-commit z; mkdir n; "$SELF" exchange n .git`},
		{"a nameless file is given a name", `"$SELF" tmpfile .envrc; "$SELF" tmpfile .git/hooks/z`},
		{"openat2 and old openers", `"$SELF" openat2 .envrc; "$SELF" creat .envrc; "$SELF" mknod .envrc`},
		{"truncate by path", `"$SELF" truncate .git/hooks/pre-commit`},
		{"the mode through a descriptor open for reading", `"$SELF" fchmod .git/hooks/pre-commit`},
		{"an ACL", `"$SELF" acl .git/hooks/pre-commit`},
		{"a link of a descriptor open for reading", `"$SELF" linkfd .bashrc z; echo evil >z`},
		{"older places of a remote's URL", `mkdir -p .git/branches .git/remotes; echo x >.git/branches/o; echo x >.git/remotes/o`},
		{"through a mount in a namespace of the tool's own", `unshare -Urm sh -c 'mount --bind .git/hooks d; echo evil >d/pre-push'`},
		{"the supervisor's own /proc files", `"$SELF" ownproc`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, hooked)
				before := protectedFiles(t, dir)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.script}, Env: []string{roleEnv + "=act"}})
				if after := protectedFiles(t, dir); after != before {
					t.Errorf("protected files changed\nbefore:\n%s\nafter:\n%s\noutput:\n%s", before, after, out)
				}
				// The same script without a supervisor shows that there is something to refuse.
				bare, _ := workspace(t, uid)
				script(t, bare, uid, hooked)
				free, _ := run(t, job{Silent: true, Dir: bare, UID: uid, Argv: []string{"bash", "-c", c.script}, Env: []string{roleEnv + "=act"}})
				if protectedFiles(t, bare) == before && !strings.Contains(free, "UNEXPECTED") {
					t.Error("without a supervisor the script changes nothing either")
				}
				if strings.Contains(out, "UNEXPECTED") || strings.Contains(out, "supervisor test:") {
					t.Error(out)
				}
			})
		}
	}
}
