package supervisor

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/protected"
)

// hiddenNames are names whose content is kept unread, as a policy may ask.
var hiddenNames = []string{".env", ".env.*"}

// verdict judges one path by rules.
func verdict(t testing.TB, r Rules, path string) uint32 {
	t.Helper()
	b, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(b); err != nil {
		t.Fatal(err)
	}
	m := &matcher{rules: b}
	m.n = uint(copy(m.path[:], path))
	m.judgeByName()
	return m.hit
}

// TestNamesBeyondASCIIAreHeld: where case folds, such a character is none, in the name
// as in the path; a name is held all the same.
func TestNamesBeyondASCIIAreHeld(t *testing.T) {
	for _, fold := range []bool{true, false} {
		r := Rules{Roots: []Root{{Path: "/w", Fold: fold}}, Names: []protected.Pattern{{Path: "caf\u00e9.sh"}, {Path: "\u79d8\u5bc6"}, {Path: "a/pro\ufb01l"}}, Hidden: []string{"schl\u00fcssel*"}}
		for path, want := range map[string]uint32{
			"/w/caf\u00e9.sh": hitWhole, "/w/d/caf\u00e9.sh/x": hitWhole, "/w/\u79d8\u5bc6": hitWhole, "/w/schl\u00fcssel": hitHidden, "/w/schl\u00fcssel.txt": hitHidden,
			"/w/a/pro\ufb01l": hitWhole, "/w/coffee.sh": 0, "/w/x": 0, "/w/schl": 0,
		} {
			if got := verdict(t, r, path); got&^(hitPrefix|hitDeep) != want {
				t.Errorf("fold %v: %s: %b, want %b", fold, path, got, want)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	rules := Rules{
		Roots:  []Root{{Path: "/ws"}, {Path: "/ws/inner"}, {Path: "/fold", Fold: true}, {Path: "/x/.git"}, {Path: "/y/.claude/w"}},
		Names:  protected.Patterns(),
		Paths:  []protected.Pattern{{Path: "/main/.git/hooks"}, {Path: "/main/.git/config", Kind: protected.GitConfig}},
		Hidden: hiddenNames,
	}
	cases := []struct {
		name, path string
		want       uint32
	}{
		{"a plain file", "/ws/a/b.go", 0},
		{"a name outside every root", "/home/u/.bashrc", 0},
		{"a root's own name", "/ws", 0},
		{"a name whose beginning is a root's", "/ws2/.bashrc", 0},
		{"a protected name at the top", "/ws/.bashrc", hitWhole},
		{"a protected name far down", "/ws/a/b/c/.bashrc", hitWhole},
		{"a protected name in a root within a root", "/ws/inner/.bashrc", hitWhole},
		{"beneath a protected name", "/ws/.vscode/a/b", hitWhole},
		{"a name that only begins so", "/ws/.bashrc2", 0},
		{"a name that only ends so", "/ws/a.bashrc", 0},
		{"another case without folding", "/ws/.BASHRC", 0},
		{"another case with folding", "/fold/.BashRC", hitWhole},
		{"the Kelvin sign", "/fold/.hus\u212ay", hitWhole},
		{"the long s", "/fold/.ba\u017fhrc", hitWhole},
		{"a ligature", "/fold/.gitcon\ufb01g", hitWhole},
		{"a ligature below a repository", "/fold/.git/con\ufb01g", hitWhole | hitLoose},
		{"a ligature in a longer name", "/fold/.bash_pro\ufb01le", hitWhole},
		{"a ligature of other letters", "/fold/.gitcon\ufb02g", 0},
		{"a ligature without folding", "/ws/.gitcon\ufb01g", 0},
		{"a ligature across a name's end", "/fold/.pro\ufb01", 0},
		{"an ignorable code point", "/fold/.g\u200dit/h\u200cooks/x", hitWhole | hitLoose},
		{"an ignorable code point in front", "/fold/\u200d.envrc", hitWhole},
		{"a repository", "/ws/.git", hitGitFile | hitPrefix},
		{"a repository's hooks", "/ws/r/.git/hooks", hitFixed},
		{"a hook", "/ws/r/.git/hooks/pre-commit", hitWhole},
		{"a plain file of a repository", "/ws/.git/HEAD", 0},
		{"the configuration", "/ws/.git/config", hitConfig},
		{"the lock of the configuration", "/ws/.git/config.lock", hitLock},
		{"above the attributes", "/ws/.git/info", hitFixed},
		{"a submodule's hooks", "/ws/.git/modules/a/hooks", 0},
		{"a nested submodule's hook", "/ws/.git/modules/a/b/modules/c/hooks/x", hitWhole},
		{"a submodule's configuration", "/ws/.git/modules/lib/x/config", hitConfig},
		{"a submodule's directory", "/ws/.git/modules/lib", 0},
		{"the submodules' directory", "/ws/.git/modules", 0},
		{"a worktree's commondir", "/ws/.git/worktrees/w/commondir", hitCommon},
		{"a root that is itself a repository", "/x/.git/hooks/a", hitWhole},
		{"a root beneath a protected name", "/y/.claude/w/main.go", 0},
		{"a protected path outside the roots", "/main/.git/hooks/x", hitWhole},
		{"a protected file outside the roots", "/main/.git/config", hitConfig},
		{"above a protected path", "/main", hitPrefix},
		{"a hidden name", "/ws/a/.env", hitHidden},
		{"a hidden name with an ending", "/ws/.env.local", hitHidden},
		{"a name that only looks hidden", "/ws/.environment", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := verdict(t, rules, c.path)
			if got&^hitDeep != c.want&^hitDeep {
				t.Errorf("%s: hit %b, want %b", c.path, got, c.want)
			}
			if c.want&hitDeep != 0 && got&(hitDeep|hitWhole) == 0 {
				t.Errorf("%s: hit %b lacks the bit of a name above one", c.path, got)
			}
		})
	}
}

// TestOtherSpellingsAreHeld has the names that vfat, NTFS and SMB take for protected ones, and some like them that are none.
func TestOtherSpellingsAreHeld(t *testing.T) {
	r := Rules{Roots: []Root{{Path: "/w", Fold: true}}, Names: protected.Patterns(), Hidden: hiddenNames}
	held := []string{
		".envrc.", ".envrc. . ", ".ENVRC ", ".envrc::$DATA", ".envrc:x", "ENVRC~1", "envrc~2", "ENVRC~10", "EN12AB~1", "BASHRC~1", "bashrc~3", "BA0FF1~9", "BASHR~12", "BASH_P~1", "VSCODE~1/tasks.json",
		".vscode::$INDEX_ALLOCATION/x", ".vscode. /x", "MCP~1.JSO", "mcp~4.jso", "MC1A2B~1.JSO", "a/b/x.code-workspace", "x.CODE-WORKSPACE.", "x.code-workspace:s", "PROJEC~1.COD", "OPENCO~1.JSO", "opencode.jsonc", "lefthook.yml",
		".hg", ".hg/store/journal", "HG~1/hgrc", ".hg./hgrc", ".sl/store/x", ".svn/wc.db", "_darcs/prefs/defaults", "CVS/Root", "_FOSSIL_", ".jj/repo/CONFIG~1.TOM", "HOLDFA~1", ".cargo/config.toml", "CARGO~1/CONFIG~1.TOM", ".zed/tasks.json", ".githooks/x", ".g\u200dithooks/x",
		".git./hooks/pre-commit", "GIT~1/hooks/pre-commit", "git~2/hooks/pre-commit", "GI7EBA~1/hooks/x", ".git::$INDEX_ALLOCATION/hooks/x", ".Git /hooks/x", ".git/modules/a/config.worktree.", ".git/modules/a/COMMON~1",
	}
	for _, p := range held {
		if got := verdict(t, r, "/w/"+p); got&(hitWhole|hitConfig) == 0 {
			t.Errorf("%s: %b", p, got)
		}
	}
	for _, p := range []string{".env.", "ENV~1", "ENV~1.LOC", ".env::$DATA", ".ENV.local ", "EN00FF~1"} {
		if got := verdict(t, r, "/w/"+p); got&hitHidden == 0 {
			t.Errorf("%s: %b", p, got)
		}
	}
	for _, p := range []string{"GIT~1", ".git.", ".git::$INDEX_ALLOCATION", ".jj/repo"} {
		if got := verdict(t, r, "/w/"+p); got&hitGitFile == 0 {
			t.Errorf("%s: %b", p, got)
		}
	}
	free := []string{
		"x~1", "git~", "~git", "notes.~1~", "git~1x", "x.git", "g~1", "en~1", "PROGRA~1", "envrc", "bashrc", "vscode/x", "mcp.json", "code-workspace", "x.code-workspaces", "xcode-workspace/a", "a:b", "hg/hgrc", ".jj/repo/store/x", ".github/copilot-instructions.md", ".cargo/registry/x", ".npmrc",
		".gitignore", ".gitattributes", ".github/workflows/x.yml", "package.json", "Cargo.toml", "go.mod", "Makefile", "CLAUDE.md", "AGENTS.md", "src/lefthook/main.go", "x.cod", "a b", "a.b. c", "EN00GF~1", "config", "hooks/x",
	}
	for _, p := range free {
		if got := verdict(t, r, "/w/"+p); got&^(hitPrefix|hitDeep) != 0 {
			t.Errorf("%s is held: %b", p, got)
		}
	}
}

// TestEachNameHasItsReason: the list is data, of which the documentation says the same.
func TestEachNameHasItsReason(t *testing.T) {
	page, err := os.ReadFile("../../docs/protected-names.md")
	if err != nil {
		t.Fatal(err)
	}
	_, lists, _ := strings.Cut(string(page), "## Held, by who")
	held, build, _ := strings.Cut(lists, "## Held unless")
	for _, n := range protected.Names() {
		group := held
		if n.Build {
			group = build
		}
		if n.Why == "" || strings.Count(lists, "`"+n.Path+"`") != 1 || !strings.Contains(group, "`"+n.Path+"`") {
			t.Errorf("%s, %q: no reason, or not once in its list of the documentation", n.Path, n.Why)
		}
	}
	if got := strings.Count(lists, "`") / 2; got != len(protected.Names()) {
		t.Errorf("the documentation has %d names, and the list %d", got, len(protected.Names()))
	}
}

func TestEncodeRefuses(t *testing.T) {
	cases := []struct {
		name  string
		rules Rules
	}{
		{"a relative root", Rules{Roots: []Root{{Path: "ws"}}}},
		{"a root with a dot", Rules{Roots: []Root{{Path: "/ws/../x"}}}},
		{"a root with a NUL", Rules{Roots: []Root{{Path: "/ws\x00"}}}},
		{"a root longer than PATH_MAX", Rules{Roots: []Root{{Path: "/" + strings.Repeat("a", 4096)}}}},
		{"an empty name", Rules{Names: []protected.Pattern{{}}}},
		{"a name with an empty component", Rules{Names: []protected.Pattern{{Path: "a//b"}}}},
		{"a name with dots", Rules{Names: []protected.Pattern{{Path: "../b"}}}},
		{"a wildcard in the middle of a component", Rules{Names: []protected.Pattern{{Path: "a*b"}}}},
		{"a wildcard before and behind", Rules{Names: []protected.Pattern{{Path: "*b*"}}}},
		{"a wildcard as the first component", Rules{Names: []protected.Pattern{{Path: "*/b"}}}},
		{"two deep wildcards", Rules{Names: []protected.Pattern{{Path: "a/**/b/**/c"}}}},
		{"a deep wildcard at the end", Rules{Names: []protected.Pattern{{Path: "a/**"}}}},
		{"an unknown kind", Rules{Names: []protected.Pattern{{Path: "a", Kind: 99}}}},
		{"the root directory as a path", Rules{Paths: []protected.Pattern{{Path: "/"}}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.rules.Encode(); !errors.Is(err, ErrRules) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestBrokenBlobs changes bytes of a good blob: it is refused, or judging by it ends without a panic. (The serving
// code does not fit the stack when it is instrumented, so it cannot be fuzzed by go test -fuzz.)
func TestBrokenBlobs(t *testing.T) {
	good, err := (&Rules{Roots: []Root{{Path: "/ws"}}, Names: protected.Patterns(), Paths: []protected.Pattern{{Path: "/a/b"}}, Hidden: hiddenNames}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/ws/.git/hooks", "/", "/ws/.git/modules/a/b/config", "/a", "/ws/" + strings.Repeat("x/", 2000)}
	r := rand.New(rand.NewPCG(1, 2))
	judged := 0
	for range 20000 {
		b := bytes.Clone(good)
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		if r.IntN(8) == 0 {
			b = b[:r.IntN(len(b))]
		}
		if Check(b) != nil {
			continue
		}
		judged++
		m := &matcher{rules: b}
		m.n = uint(copy(m.path[:], paths[r.IntN(len(paths))]))
		m.judge()
	}
	if judged < 1000 {
		t.Errorf("only %d blobs were good enough to be judged by", judged)
	}
}

// TestNamesOfEachKindAreHeld has members of each kind of program, and beside them names that tools have to write.
func TestNamesOfEachKindAreHeld(t *testing.T) {
	r := Rules{Roots: []Root{{Path: "/w", Fold: true}}, Names: protected.Patterns()}
	for _, p := range []string{
		".python-version", "sub/.nvmrc", "global.json", ".prototools", ".sdkmanrc", "sub/prek.toml", ".pre-commit-config.yml", "Grumphp.yaml", "hk.pkl", ".config/hk.pkl", "lint-staged.config.mjs", ".git-hooks/pre_commit/x.rb",
		".valgrindrc", "jdb.ini", ".ctags.d/x.ctags", ".autoenv_leave.zsh", ".shadowenv.d/x.lisp", ".rbenv-vars", ".yarn/releases/yarn-4.js", ".mvn/extensions.xml", ".bundle/plugin/index", ".poetry/plugins/x", "bunfig.toml",
		".github/extensions/x/extension.mjs", ".augment/settings.json", ".kimi/mcp.json", ".kimi-code/config.toml", "gptme.toml", ".arcconfig", ".reviewboardrc", ".p4config", "_MTN/monotonerc", ".vs/tasks.vs.json",
	} {
		if got := verdict(t, r, "/w/"+p); got&hitWhole == 0 {
			t.Errorf("%s is free", p)
		}
	}
	for _, p := range []string{
		".env", ".env.local", "version", "python-version", "src/locales/hk.json", "prek.md", ".yarn/cache/x.zip", ".yarn/install-state.gz", ".mvn/wrapper/maven-wrapper.properties", ".bundle/config", "tools/bazel/x.bzl",
		".github/workflows/ci.yml", ".next/x", ".venv/bin/python", ".eslintrc.json", "globals.json", "ctags", "tags", ".config/x.toml", "agent/x", ".agentignore", "vs/x",
	} {
		if got := verdict(t, r, "/w/"+p); got&^(hitPrefix|hitDeep) != 0 {
			t.Errorf("%s is held: %b", p, got)
		}
	}
}
