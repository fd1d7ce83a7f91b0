package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/protected"
)

// obeyed are names that other programs execute or obey, written apart from the list.
const obeyed = ".gitconfig .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zprofile .zshenv .zlogin .profile .login .cshrc .tcshrc " +
	".kshrc .xprofile .inputrc .ripgreprc .envrc .mcp.json opencode.json opencode.jsonc .crush.json .aider.conf.yml .Rprofile .pdbrc .exrc .nvim.lua " +
	".gdbinit .lldbinit .dir-locals.el .hg/hgrc .jj/repo/config.toml .sl/config .yarnrc.yml .pnpmfile.cjs .mise.toml .cargo/config.toml " +
	".pre-commit-config.yaml lefthook.yml my.code-workspace .vscode .idea .zed .claude .codex .cursor .gemini .agents .opencode .kiro .roo .continue " +
	".amazonq .qwen .copilot .windsurf .devcontainer .husky .githooks .direnv .vimrc .gvimrc .irbrc irb.rc _irbrc .pryrc .ghci .octaverc .ocamlinit .iex.exs .perldb .Renviron .helix " +
	"my.sublime-project .lazy.lua mise.local.toml .mise.local.toml .mise .config/mise.toml .config/mise mise/config.toml .BashRC .vscode. opencode.JSON MY.Code-Workspace"

// TestKernelNamesThatOthersObey tries to make each such name, by all calls that make one, and to change and remove one that is there.
func TestKernelNamesThatOthersObey(t *testing.T) {
	kerneltest.Long(t)
	obeyed := obeyed
	if !kerneltest.All(t) { // every third
		names := strings.Fields(obeyed)
		obeyed = ""
		for i := 0; i < len(names); i += 3 {
			obeyed += names[i] + " "
		}
	}
	attack := `cd new; : >f; mkdir d; printf evil >d/f
		for n in ` + obeyed + `; do
			case $n in */*) mkdir -p e; mkdir -p "e/${n#*/}" || : >"e/${n#*/}"; mv -T e "${n%%/*}"; ln -sT "$PWD/d" "${n%%/*}"; mkdir -p "${n%/*}"; mv -T e "${n%/*}";; esac
			printf evil >"$n"; mkdir -p "$n/x"; mv -T f "$n"; mv -T d "$n"; ln -T f "$n"; ln -sT f "$n"; mkfifo "$n"; "$SELF" bind "$n"; "$SELF" creat "$n"; "$SELF" mknod "$n"; "$SELF" tmpfile "$n"
		done
		cd ../old; : >f
		for n in ` + obeyed + `; do
			printf evil >>"$n"; printf evil >"$n"; printf evil 1<>"$n"; chmod 777 "$n"; "$SELF" truncate "$n"; cp f g; mv -T g "$n"; mv -T "$n" moved; "$SELF" exchange f "$n"; ln -T "$n" second && printf evil >>second; rm -f "$n"; ln -sfT f "$n"
			case $n in */*) mv -T "${n%%/*}" away; mkdir e; "$SELF" exchange e "${n%%/*}";; esac
		done
		cd ../dirs; : >f
		for n in ` + obeyed + `; do
			printf evil >"$n/old"; printf evil >>"$n/old"; mv f "$n/old"; mv f "$n"; mkdir "$n/new"; ln -s f "$n/new"; rm -f "$n/old"; rmdir "$n"; mv -T "$n" moved; chmod 777 "$n" "$n/old"
		done; true`
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			script(t, dir, uid, `mkdir new old dirs; for n in `+obeyed+`; do mkdir -p "$(dirname "old/$n")" "dirs/$n"; printf old >"old/$n"; printf old >"dirs/$n/old"; done`)
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", attack}, Env: []string{roleEnv + "=act"}})
			if code != 0 || strings.Contains(out, "supervisor test:") {
				t.Errorf("exit %d\n%s", code, out)
			}
			for _, n := range strings.Fields(obeyed) {
				if _, err := os.Lstat(filepath.Join(dir, "new", n)); err == nil {
					t.Errorf("%s was made", n)
				}
				for _, old := range []string{"old/" + n, "dirs/" + n + "/old"} {
					st, err := os.Lstat(filepath.Join(dir, old))
					if b, e := os.ReadFile(filepath.Join(dir, old)); err != nil || e != nil || string(b) != "old" || st.Mode() != 0o644 {
						t.Errorf("%s: %v, %q, %v", old, st, b, e)
					}
				}
			}
		})
	}
}

// TestKernelOrdinaryProjectsCanBeMade is the honest side: new projects, editors' files, and the names that a policy opens.
func TestKernelOrdinaryProjectsCanBeMade(t *testing.T) {
	kerneltest.Long(t)
	cases := []struct {
		name, needs, script string
		open                []string
	}{
		{"go mod init", "go", `export GOCACHE=$PWD/../out/c GOFLAGS=-mod=mod GOTELEMETRY=off GOTOOLCHAIN=local; mkdir m; cd m; go mod init example.com/m; printf 'package main\nfunc main() {}\n' >main.go; go mod edit -go=1.21; go mod tidy; [ -e go.mod ]`, nil},
		{"npm init", "npm", `mkdir p; cd p; npm init -y --offline >/dev/null; npm pkg set scripts.x=true; npm install --offline --no-audit --no-fund >/dev/null; [ -e package.json ]; echo audit=false >.npmrc`, nil},
		{"cargo new", "cargo", `export CARGO_HOME=$PWD/.cargo; cargo new -q c; [ -e c/Cargo.toml ]; [ -d c/.git ]`, nil},
		{"files of a project", "", `mkdir -p .github/workflows src/hg .hg/store .cargo/registry; for f in Makefile package.json Cargo.toml pyproject.toml tsconfig.json .npmrc .gitignore .gitattributes .editorconfig .prettierrc .eslintrc.json .github/workflows/ci.yml CLAUDE.md AGENTS.md .cursorrules Dockerfile go.work x.code workspace my.code-workspaces .hg/requires .cargo/registry/x a~1 b:c; do echo x >$f; mv $f $f.new; mv $f.new $f; sed -i s/x/y/ $f; grep -qx y $f; ln $f second; rm second; rm $f; done; mv src/hg hg; mv .github g; mv g .github`, nil},
		{"an editor's settings that the policy opens", "", `mkdir .vscode; echo '{}' >.vscode/settings.json; sed -i 's/{}/{"a": 1}/' .vscode/settings.json; grep -q a .vscode/settings.json; mv .vscode v; mv v .vscode; rm -r .vscode; ! mkdir .idea`, []string{".vscode"}},
		{"build files that the policy opens", "", `mkdir .cargo; for f in .cargo/config.toml .yarnrc.yml .pnpmfile.cjs .mise.toml .pre-commit-config.yaml lefthook.yml; do echo x >$f; sed -i s/x/y/ $f; grep -q y $f; rm $f; done; mv .cargo c; ! echo >.envrc`, []string{"build"}},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				rules.Names = nil
				for _, n := range protected.Names() {
					if opens := append([]string{""}, c.open...)[len(c.open)]; opens != n.Path && !(opens == "build" && n.Build) {
						rules.Names = append(rules.Names, n.Pattern)
					}
				}
				j := job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", c.script}, Env: []string{roleEnv + "=act", "RUSTUP_HOME=/root/.rustup"}}
				if c.needs != "" {
					plain := j
					plain.Silent, plain.Argv = true, []string{"bash", "-c", c.needs + " --version || " + c.needs + " version"}
					if _, code := run(t, plain); code != 0 {
						t.Skipf("no %s that runs %s on this machine", c.needs, user)
					}
				}
				out, code := run(t, j)
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
			})
		}
	}
}
