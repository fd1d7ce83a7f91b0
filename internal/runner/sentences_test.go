package runner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestSentences holds the line that a person or a model reads of each kind of violation to testdata/violations.golden, for it
// to be read as a whole: what was wanted, why not, and what to do instead.
func TestSentences(t *testing.T) {
	files := policy.Files{Protect: policy.Protect{Add: []string{"secret.key"}}}
	var out strings.Builder
	refuse := func(kind string, reason supervisor.Reason, deed supervisor.Deed, paths ...string) {
		d := supervisor.Denial{Reason: reason, Deed: deed, PID: 7, Count: 1, Command: "tool\x00x"}
		copy(d.Paths[:], paths)
		fmt.Fprintf(&out, "%s\n\t%s\n", kind, JudgeDenial(d, nil, files))
	}
	byRule := func(kind string, c supervisor.Cause, deed supervisor.Deed, paths ...string) {
		d := supervisor.Denial{Deed: deed, PID: 7, Count: 1}
		copy(d.Paths[:], paths)
		r := refusedOf(d)
		r.byRule(c, files)
		fmt.Fprintf(&out, "%s\n\t%s\n", kind, r.printable())
	}
	byRule("a protected name", supervisor.Cause{Rule: ".bashrc", Kind: supervisor.CauseName, Why: "bash, where the directory is a HOME"}, supervisor.DeedCreate, "/w/.bashrc")
	byRule("a protected name of the policy's", supervisor.Cause{Rule: "secret.key", Kind: supervisor.CauseName}, supervisor.DeedWrite, "/w/secret.key")
	byRule("a name of a build", supervisor.Cause{Rule: "lefthook.*", Kind: supervisor.CauseName, Why: "lefthook: what the hooks in .git/hooks run", Build: true}, supervisor.DeedCreate, "/w/lefthook.toml")
	byRule("a directory above one", supervisor.Cause{Rule: ".lsp/config.edn", Kind: supervisor.CauseAbove, Why: "clojure-lsp: commands that tell the classpath"}, supervisor.DeedRename, "/w/.lsp", "/w/x")
	byRule("a hook", supervisor.Cause{Rule: "hooks/**", Kind: supervisor.CauseGit, Why: "git runs them"}, supervisor.DeedCreate, "/w/.git/hooks/post-commit")
	byRule("another file of a git directory", supervisor.Cause{Kind: supervisor.CauseGit}, supervisor.DeedCreate, "/w/.git/odd")
	byRule("a hidden name", supervisor.Cause{Rule: ".env.*", Kind: supervisor.CauseHiddenName}, supervisor.DeedRead, "/w/.env.local")
	byRule("a hidden path", supervisor.Cause{Rule: "/w/secret", Kind: supervisor.CauseHiddenPath}, supervisor.DeedRead, "/w/secret/key")
	byRule("a path that is read alone", supervisor.Cause{Rule: "/w/held", Kind: supervisor.CausePath}, supervisor.DeedWrite, "/w/held/x")
	refuse("the sandbox's own", supervisor.ReasonOwn, supervisor.DeedWrite, "/proc/1/oom_score_adj")
	refuse("a directory without a path", supervisor.ReasonLost, supervisor.DeedCreate, "x")
	refuse("a directory that would become git's", supervisor.ReasonComplete, supervisor.DeedCreate, "/w/d/HEAD")
	refuse("a directory that would cease to be git's", supervisor.ReasonCease, supervisor.DeedRename, "/w/d/HEAD", "/w/d/x")
	refuse("a new repository", supervisor.ReasonNewGit, supervisor.DeedMakeDir, "/w/.git")
	refuse("a git configuration", supervisor.ReasonConfig, supervisor.DeedRename, "/w/.git/config.lock", "/w/.git/config")
	refuse("a second git configuration", supervisor.ReasonSecondConfig, supervisor.DeedRename, "/w/.git/config.lock", "/w/.git/config")
	refuse("a text that git obeys", supervisor.ReasonText, supervisor.DeedWrite, "/w/.git/rebase-merge/git-rebase-todo")
	refuse("a lock", supervisor.ReasonLock, supervisor.DeedRemove, "/w/.git/index.lock")
	refuse("an index", supervisor.ReasonIndex, supervisor.DeedRename, "/w/.git/index.lock", "/w/.git/index")
	refuse("a protected name in an index", supervisor.ReasonEntry, supervisor.DeedRename, ".vscode/tasks.json", "/w/.git/index")
	refuse("a directory of a sparse index", supervisor.ReasonEntry, supervisor.DeedRename, "lib/", "/w/.git/index")
	refuse("a link into a git directory", supervisor.ReasonNode, supervisor.DeedSymlink, "/w/.git/refs/x")
	refuse("a race about a git directory", supervisor.ReasonRace, supervisor.DeedCreate, "/w/d/x")
	refuse("a link in the way of a .git file", supervisor.ReasonWay, supervisor.DeedSymlink, "/w/repo")
	refuse("a link in the place of the user's directory", supervisor.ReasonPlace, supervisor.DeedSymlink, "/w/app")
	refuse("a mode outside", supervisor.ReasonFence, supervisor.DeedMode, "/usr/bin/x")
	refuse("a setuid bit", supervisor.ReasonSetID, supervisor.DeedSetID, "/w/x")
	refuse("a directory for all", supervisor.ReasonOthers, supervisor.DeedMode, "/w/x")
	refuse("hidden memory", supervisor.ReasonMemory, supervisor.DeedCall)
	refuse("another mount namespace", supervisor.ReasonMounts, supervisor.DeedCall)
	refuse("a second tracer", supervisor.ReasonTracer, supervisor.DeedTrace)
	refuse("an address without namespaces", supervisor.ReasonAddress, supervisor.DeedConnect, "\x02\x00\x01\xbb\xc0\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	refuse("to serve without namespaces", supervisor.ReasonAddress, supervisor.DeedBind, "\x02\x00\x01\xbb\xc0\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	refuse("a socket without namespaces", supervisor.ReasonSocket, supervisor.DeedConnect, "\x01\x00/run/x.sock\x00")
	for _, c := range []policy.Connection{
		{Protocol: "connect", Host: "a.example", Port: 443, Reason: `no entry of the allow-list names it; "a.example:443" would allow it`},
		{Protocol: "http", Host: "a.example", Port: 80, Rule: "*.example", Reason: `the entry "*.example" of the deny-list names it`},
		{Protocol: "https", Host: "a.example", Port: 443, Method: "PUT", Path: "/x", Rule: "request rule a.example", Reason: `PUT "/x" is not allowed at this host, which may be asked: GET, any path`},
		{Protocol: "connect", Host: "a.example", Port: 443, Rule: "Decide, for the run", Reason: "denied by Decide"},
	} {
		fmt.Fprintf(&out, "the network: %s\n\t%s\n", c.Protocol, ViolationOf(c))
	}
	fixture.Golden(t, "violations.golden", out.String())
}
