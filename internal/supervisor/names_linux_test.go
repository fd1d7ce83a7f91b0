package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"golang.org/x/sys/unix"
)

// obeyed are names that other programs execute or obey, written apart from the list.
const obeyed = ".gitconfig .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zprofile .zshenv .zlogin .profile .login .cshrc .tcshrc " +
	".kshrc .xprofile .inputrc .ripgreprc .envrc .mcp.json opencode.json opencode.jsonc .crush.json .aider.conf.yml .Rprofile .pdbrc .exrc .nvim.lua " +
	".gdbinit .lldbinit .dir-locals.el .hg .sl .svn .bzr _darcs CVS/Root .fslckout _FOSSIL_ .jj/repo/config.toml .repo/repo .yarnrc.yml .pnpmfile.cjs .mise.toml .cargo/config.toml " +
	".pre-commit-config.yaml lefthook.yml my.code-workspace .vscode .idea .zed .claude .codex .cursor .gemini .agents .opencode .kiro .roo .continue " +
	".amazonq .qwen .copilot .windsurf .devcontainer .husky .githooks .direnv .vimrc .gvimrc .RData .envrc.local .ruby-env .versions.conf .lite_project.lua .lsp/config.edn hie.yaml .github/hooks .github/copilot .clinerules/hooks .kilo .kilocode .junie .factory .pi .amp .openhands .trae .vibe .vim/coc-settings.json .theia .lazygit.yml " +
	"rust-toolchain rust-toolchain.toml .tool-versions .bsp .irbrc irb.rc _irbrc .pryrc .ghci .octaverc .ocamlinit .iex.exs .perldb .Renviron .helix " +
	"my.sublime-project .lazy.lua mise.local.toml .mise.local.toml .mise .config/mise.toml .config/mise mise/config.toml .BashRC .vscode. opencode.JSON MY.Code-Workspace"

// TestKernelNamesThatOthersObey tries to make each such name, by all calls that make one, and to change and remove one that is there.
func TestKernelNamesThatOthersObey(t *testing.T) {
	kerneltest.Long(t)
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			script(t, dir, uid, `mkdir new; for n in ordinary `+obeyed+`; do d="$d old/$n dirs/$n" f="$f old/$n"; done; mkdir -p $d; rmdir $f
				for n in ordinary `+obeyed+`; do printf old >"old/$n"; printf old >"dirs/$n/old"; done`)
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `exec "$SELF" names`}, Env: []string{roleEnv + "=act"}})
			if code != 0 || strings.Contains(out, "supervisor test:") {
				t.Errorf("exit %d\n%s", code, out)
			}
			for _, n := range strings.Fields("ordinary " + obeyed) {
				if _, err := os.Lstat(filepath.Join(dir, "new", n)); (err == nil) != (n == "ordinary") {
					t.Errorf("%s was made, or an ordinary name was not: %v", n, err)
				}
				for _, old := range []string{"old/" + n, "dirs/" + n + "/old"} {
					st, err := os.Lstat(filepath.Join(dir, old))
					b, e := os.ReadFile(filepath.Join(dir, old))
					if kept := err == nil && e == nil && string(b) == "old" && st.Mode() == 0o644; kept != (n != "ordinary") {
						t.Errorf("%s: %v, %q, %v", old, st, b, e)
					}
				}
			}
		})
	}
}

// attackNames is the tool: it tries all that makes and changes such names, and an ordinary one.
func attackNames() error {
	for _, attack := range []struct {
		dir string
		try func(name string)
	}{{"new", makeName}, {"old", changeName}, {"dirs", changeDirectory}} {
		if err := os.Chdir(attack.dir); err != nil {
			return err
		}
		for _, name := range strings.Fields("ordinary " + obeyed) {
			for _, rest := range []string{"moved", "away", "second", "e"} {
				os.RemoveAll(rest)
			}
			attack.try(name)
		}
		if err := os.Chdir(".."); err != nil {
			return err
		}
	}
	return nil
}

func write(name string, flags int) {
	if fd, err := unix.Open(name, flags|unix.O_WRONLY|unix.O_NONBLOCK, 0o755); err == nil {
		unix.Write(fd, []byte("evil"))
		unix.Close(fd)
	}
}

// sources makes a file f, and a directory d with one.
func sources() {
	write("f", unix.O_CREAT)
	unix.Mkdir("d", 0o755)
	write("d/f", unix.O_CREAT)
}

// makeName makes a name, which is not there.
func makeName(n string) {
	sources()
	if dir, below, is := strings.Cut(n, "/"); is { // from above: a directory with the rest, and a link to one
		os.MkdirAll("e/"+below, 0o755)
		unix.Rename("e", dir)
		if here, err := os.Getwd(); err == nil {
			unix.Symlink(here+"/d", dir)
		}
		os.MkdirAll(filepath.Dir(n), 0o755)
		unix.Rename("e", filepath.Dir(n))
	}
	write(n, unix.O_CREAT|unix.O_TRUNC)
	write(n, unix.O_CREAT|unix.O_EXCL)
	os.MkdirAll(n+"/x", 0o755)
	unix.Rename("f", n)
	unix.Rename("d", n)
	unix.Link("f", n)
	unix.Symlink("f", n)
	unix.Mkfifo(n, 0o755)
	for _, act := range []string{"bind", "creat", "mknod", "tmpfile", "openat2", "linkfd"} {
		if act == "linkfd" {
			theAct(act, "f", n)
		} else {
			theAct(act, n, "")
		}
	}
}

// changeName changes a file that is there.
func changeName(n string) {
	sources()
	write(n, unix.O_APPEND)
	write(n, unix.O_TRUNC)
	write(n, unix.O_CREAT|unix.O_TRUNC)
	if fd, err := unix.Open(n, unix.O_RDWR|unix.O_CREAT, 0o755); err == nil {
		unix.Write(fd, []byte("evil"))
		unix.Close(fd)
	}
	unix.Chmod(n, 0o777)
	theAct("fchmod", n, "")
	unix.Truncate(n, 0)
	unix.Rename("f", n)
	unix.Rename(n, "moved")
	theAct("exchange", "f", n)
	if unix.Link(n, "second") == nil {
		write("second", unix.O_APPEND)
	}
	unix.Unlink(n)
	unix.Unlink("link")
	unix.Symlink("f", "link")
	unix.Rename("link", n)
	if dir, _, is := strings.Cut(n, "/"); is {
		unix.Rename(dir, "away")
		unix.Mkdir("e", 0o755)
		theAct("exchange", "e", dir)
	}
}

// changeDirectory changes a directory that is there, with a file old.
func changeDirectory(n string) {
	sources()
	write(n+"/old", unix.O_TRUNC)
	write(n+"/old", unix.O_APPEND)
	unix.Rename("f", n+"/old")
	unix.Rename("f", n)
	unix.Mkdir(n+"/new", 0o755)
	unix.Symlink("f", n+"/new")
	unix.Unlink(n + "/old")
	unix.Rmdir(n)
	unix.Rename(n, "moved")
	unix.Chmod(n, 0o777)
	unix.Chmod(n+"/old", 0o777)
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
		{"files of a project", "", `mkdir -p .github/workflows src/hg .jj/repo/store .cargo/registry; for f in Makefile package.json Cargo.toml pyproject.toml tsconfig.json .npmrc .gitignore .gitattributes .editorconfig .prettierrc .eslintrc.json .github/workflows/ci.yml CLAUDE.md AGENTS.md .cursorrules Dockerfile go.work x.code workspace my.code-workspaces .jj/repo/store/type .cargo/registry/x a~1 b:c; do echo x >$f; mv $f $f.new; mv $f.new $f; sed -i s/x/y/ $f; grep -qx y $f; ln $f second; rm second; rm $f; done; mv src/hg hg`, nil},
		{"a repository of Jujutsu, which is no file", "", `mkdir -p .jj/repo/store .jj/working_copy r; echo git >.jj/repo/store/type; echo x >.jj/repo/store/type.new; mv .jj/repo/store/type.new .jj/repo/store/type; rm -r .jj; mkdir .jj
			for text in ../../r "gitdir: ../r"; do ! echo "$text" >.jj/repo; ! echo "$text" >>.jj/repo; done; echo ../../r >f; ! mv f .jj/repo; ! ln f .jj/repo; ! ln -s ../r .jj/repo; ! mv r .jj/repo; [ ! -e .jj/repo ]`, nil},
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
