package presets

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAToolDecidesNothingOfAnotherWorkspace: home/me/a was the workspace of an earlier run, whose tool has made these links and files.
func TestAToolDecidesNothingOfAnotherWorkspace(t *testing.T) {
	secret := []string{"home/me/notes/diary", "home/me/notes/VERSION", "home/me/notes/bin/x", "srv/data/f", "srv/data/bin/x", "srv/data/release"}
	for _, c := range []struct {
		name  string
		path  string
		env   map[string]string
		names []string
		want  string // what of home/me/a is shown, which may be
	}{
		{"a directory of PATH is a link", "ROOT/home/me/a/venv/bin", nil, []string{"home/me/a/venv/bin -> ROOT/home/me/notes"}, ""},
		{"a directory on the way is one", "ROOT/home/me/a/venv/bin", nil, []string{"home/me/a/venv -> ROOT/home/me/notes"}, ""},
		{"a relative link", "ROOT/home/me/a/venv/bin", nil, []string{"home/me/a/venv/bin -> ../../notes"}, ""},
		{"links by way of a directory of root's", "ROOT/home/me/a/venv/bin", nil, []string{"home/me/a/venv/bin -> /usr/../ROOT/home/me/notes"}, ""},
		{"a file of the user's in a directory of PATH", "ROOT/home/me/a/venv/bin", nil, []string{"home/me/a/venv/bin/x -> ROOT/home/me/notes/diary"}, "home/me/a/venv/bin"},
		{"a program of a directory that looks like a toolchain's", "ROOT/home/me/a/venv/bin", nil, []string{"home/me/a/venv/bin/x -> ROOT/home/me/notes/bin/x"}, "home/me/a/venv/bin"},
		{"links to links", "ROOT/home/me/a/bin", nil, []string{"home/me/a/bin/x -> y", "home/me/a/bin/y -> ROOT/srv/data/bin/x"}, "home/me/a/bin"},
		{"a mark that is a link", "ROOT/home/me/a/bin", nil, []string{"home/me/a/bin/x", "home/me/a/release -> ROOT/srv/data/release", "home/me/a/.env"}, "home/me/a/bin"},
		{"a mark in a repository", "ROOT/home/me/a/bin", nil, []string{"home/me/a/bin/x", "home/me/a/VERSION", "home/me/a/.git/HEAD", "home/me/a/.env"}, "home/me/a/bin"},
		{"the user's link to a directory with links", "ROOT/home/me/bin", nil, []string{"home/me/bin -> a/bin", "home/me/a/bin/x -> ROOT/home/me/notes/diary"}, "home/me/bin"},
		{"the user's link to a link", "ROOT/home/me/bin", nil, []string{"home/me/bin -> a/bin", "home/me/a/bin -> ../notes"}, ""},
		{"the user's link in a toolchain to a link", "ROOT/home/me/.local/bin", nil, []string{"home/me/.local/bin/x -> ../../a/x", "home/me/a/x -> ROOT/home/me/notes/diary"}, "home/me/.local/bin"},
		{"caches", "", map[string]string{"GOCACHE": "ROOT/home/me/a/c", "PIP_CACHE_DIR": "ROOT/home/me/a/d/e", "XDG_CACHE_HOME": "ROOT/home/me/a/xdg"},
			[]string{"home/me/a/c -> ROOT/home/me/notes", "home/me/a/d -> ROOT/srv/data", "home/me/a/xdg/uv -> ROOT/home/me/notes", "srv/data/e/f"}, ""},
		{"modules of Go", "", map[string]string{"GOPATH": "ROOT/home/me/a/go"}, []string{"home/me/a/go/pkg -> ROOT/srv/data", "srv/data/mod/f"}, ""},
		{"toolchains by variables", "", map[string]string{"ANDROID_HOME": "ROOT/home/me/a/sdk", "RUSTUP_HOME": "ROOT/home/me/a/rust", "JAVA_HOME": "ROOT/home/me/a/jdk", "GOROOT": "ROOT/home/me/a/goroot",
			"CONDA_PREFIX": "ROOT/home/me/a/conda"}, []string{"home/me/a/sdk -> ROOT/home/me/notes", "home/me/a/rust -> ROOT/srv/data", "home/me/a/jdk -> ROOT/srv/data", "home/me/a/goroot -> ROOT/home/me/notes", "home/me/a/conda -> ROOT/srv/data"}, ""},
		{"parts of a toolchain that a variable names", "ROOT/home/me/a/nvm/versions/bin", map[string]string{"NVM_DIR": "ROOT/home/me/a/nvm"}, []string{"home/me/a/nvm/versions/bin/x", "home/me/a/nvm/alias -> ROOT/home/me/notes"}, "home/me/a/nvm/versions"},
		{"a toolchain that is not on PATH, as the target", "ROOT/home/me/a/bin", nil, []string{"home/me/a/bin/x -> ROOT/home/me/.config/app/f", "home/me/.config/app/f", "home/me/a/bin/y -> ROOT/home/me/.cache/go-build/f", "home/me/.cache/go-build/f"}, "home/me/a/bin"},
		{"a secret in a toolchain", "ROOT/home/me/a/bin", nil, []string{"home/me/a/bin/x -> ROOT/home/me/.cargo/credentials.toml", "home/me/.cargo/credentials.toml"}, "home/me/a/bin"},
	} {
		for _, ws := range []string{"home/me/b", "home/me/a/sub"} {
			t.Run(c.name+"/"+ws, func(t *testing.T) {
				env := map[string]string{"PATH": c.path}
				maps.Copy(env, c.env)
				p, root := made(t, ws, env, slices.Concat(secret, []string{ws + "/"}, c.names)...)
				shown := slices.DeleteFunc(slices.Concat(p.Files.Read, p.Files.CopyOnWrite), func(p string) bool { return strings.HasSuffix(p, ".cache/go-build") }) // the user's own cache
				if got := below(root, shown); got != c.want {
					t.Errorf("shown: %q, want %q", got, c.want)
				}
				if err := sound(p); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestALinkThatAToolMakesBeforeNewIsRefused has a tool that runs in home/me/a while a policy for another sandbox is made.
func TestALinkThatAToolMakesBeforeNewIsRefused(t *testing.T) {
	env := map[string]string{"PATH": "ROOT/home/me/a/venv/bin:ROOT/home/me/bin", "GOCACHE": "ROOT/home/me/a/c"}
	names := []string{"home/me/notes/diary", "home/me/mine -> notes", "home/me/bin/x", "home/me/a/venv/bin/x", "home/me/a/c/f", "home/me/a/sub/f"}
	for _, c := range []struct{ name, path, target, field string }{
		{"a directory of PATH", "/home/me/a/venv/bin", "ROOT/home/me/notes", "Files.Read["},
		{"a directory on the way", "/home/me/a/venv", "../notes", "Files.Read["},
		{"a cache", "/home/me/a/c", "../notes", "Files.CopyOnWrite["},
		{"the workspace", "/home/me/a/sub", "../other", "Files.Write["},
		{"a place that no tool writes", "/home/me/bin", "notes", ""},
		{"nothing", "/home/me/a/new", "../notes", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, root := made(t, "home/me/a/sub", env, append(names, "home/me/other/f", "home/me/notes/bin/x")...)
			p.Files.Read = append(p.Files.Read, root+"/home/me/mine") // the caller's own link
			_ = os.Rename(root+c.path, root+c.path+".old")
			if err := os.Symlink(strings.Replace(c.target, "ROOT", root, 1), root+c.path); err != nil {
				t.Fatal(err)
			}
			var bad *policy.PolicyError
			switch _, err := resolve.Files(p.Files, CheckWorkspace); {
			case c.field == "" && err != nil:
				t.Error(err)
			case c.field != "" && (!errors.As(err, &bad) || !strings.HasPrefix(bad.Field, c.field)):
				t.Errorf("%v, want an error of %s", err, c.field)
			}
		})
	}
}

// TestUsersLinksAreFollowed is the other side: what users have on their machines, as the user of the tests, with the home in the tests' directory.
func TestUsersLinksAreFollowed(t *testing.T) {
	for _, c := range []struct {
		name  string
		path  string
		env   map[string]string
		names []string
		want  string
	}{
		{"pipx", "ROOT/home/me/.local/bin", nil, []string{"home/me/.local/bin/black -> ROOT/home/me/.local/share/pipx/venvs/black/bin/black", "home/me/.local/share/pipx/venvs/black/bin/black"},
			"home/me/.local/bin home/me/.local/share/pipx/venvs"},
		{"a program in another directory of the home", "ROOT/home/me/.local/bin", nil, []string{"home/me/.local/bin/hx -> ../opt/helix/hx", "home/me/.local/opt/helix/hx"},
			"home/me/.local/bin home/me/.local/bin/hx"},
		{"a prefix behind a link in ~/.local/bin", "ROOT/home/me/.local/bin", nil, []string{"home/me/.local/bin/node -> ../opt/node/bin/node", "home/me/.local/opt/node/bin/node", "home/me/.local/opt/node/lib/node_modules/npm/x"},
			"home/me/.local/bin home/me/.local/opt/node"},
		{"rustup", "ROOT/home/me/.cargo/bin", nil, []string{"home/me/.cargo/bin/cargo -> rustup", "home/me/.cargo/bin/rustup", "home/me/.rustup/toolchains/x/bin/cargo"}, "home/me/.cargo/bin home/me/.rustup"},
		{"nvm's default behind a link", "ROOT/home/me/.nvm/versions/node/current/bin", nil, []string{"home/me/.nvm/versions/node/current -> v20", "home/me/.nvm/versions/node/v20/bin/node", "home/me/.nvm/versions/node/v20/lib/node_modules/x"},
			"home/me/.nvm/versions home/me/.nvm/versions/node/current"},
		{"pyenv", "ROOT/home/me/.pyenv/shims:ROOT/home/me/.pyenv/bin", nil, []string{"home/me/.pyenv/shims/python", "home/me/.pyenv/bin -> libexec", "home/me/.pyenv/libexec/pyenv"}, "home/me/.pyenv home/me/.pyenv/shims"},
		{"mise", "ROOT/home/me/.local/share/mise/shims", nil, []string{"home/me/.local/share/mise/shims/node -> ROOT/home/me/.local/bin/mise", "home/me/.local/bin/mise", "home/me/.local/share/mise/installs/node/20/bin/node"},
			"home/me/.local/share/mise/installs home/me/.local/share/mise/shims home/me/.local/share/mise/shims/node"},
		{"volta", "ROOT/home/me/.volta/bin", nil, []string{"home/me/.volta/bin/node -> volta-shim", "home/me/.volta/bin/volta-shim", "home/me/.volta/tools/x"}, "home/me/.volta/bin home/me/.volta/tools"},
		{"fnm", "ROOT/home/me/.local/state/fnm_multishells/1_2/bin", nil, []string{"home/me/.local/state/fnm_multishells/1_2 -> ROOT/home/me/.local/share/fnm/node-versions/v20/installation", "home/me/.local/share/fnm/node-versions/v20/installation/bin/node"},
			"home/me/.local/share/fnm home/me/.local/state/fnm_multishells"},
		{"SDKMAN's current JDK", "ROOT/home/me/.sdkman/candidates/java/current/bin", map[string]string{"JAVA_HOME": "ROOT/home/me/.sdkman/candidates/java/current"},
			[]string{"home/me/.sdkman/candidates/java/current -> 21", "home/me/.sdkman/candidates/java/21/bin/java", "home/me/.sdkman/candidates/java/21/release"}, "home/me/.sdkman/candidates home/me/.sdkman/candidates/java/current"},
		{"a toolchain on another disk", "ROOT/home/me/.cargo/bin", nil, []string{"home/me/.cargo -> ROOT/data/cargo", "data/cargo/bin/cargo"}, "home/me/.cargo/bin"},
		{"caches on another disk", "", nil, []string{"home/me/.cache -> ROOT/data/cache", "data/cache/go-build/x", "home/me/go -> ROOT/data/go", "data/go/pkg/mod/x"}, "home/me/.cache/go-build home/me/go/pkg/mod"},
		{"~/bin among the dotfiles", "ROOT/home/me/bin", nil, []string{"home/me/bin -> dotfiles/bin", "home/me/dotfiles/bin/x", "home/me/dotfiles/.git/HEAD"}, "home/me/bin"},
		{"Go below the home", "ROOT/home/me/sdk/go/bin", nil, []string{"home/me/sdk/go/bin/go", "home/me/sdk/go/VERSION"}, "home/me/sdk/go"},
		{"Miniconda", "ROOT/home/me/miniconda3/bin", nil, []string{"home/me/miniconda3/bin/python -> python3.12", "home/me/miniconda3/bin/python3.12", "home/me/miniconda3/conda-meta/"}, "home/me/miniconda3"},
		{"Homebrew", "ROOT/brew/bin", nil, []string{"brew/bin/x -> ../Cellar/x/1/bin/x", "brew/Cellar/x/1/bin/x", "brew/Homebrew/.git/HEAD"}, "brew"},
		{"another project's Python environment of the system's", "ROOT/home/me/a/.venv/bin", nil, []string{"home/me/a/.venv/bin/python -> /usr/bin/python3", "home/me/a/.venv/pyvenv.cfg", "home/me/a/.git/HEAD"}, "home/me/a/.venv"},
		{"one of pyenv's", "ROOT/home/me/a/.venv/bin", nil, []string{"home/me/a/.venv/bin/python -> ROOT/home/me/.pyenv/versions/3/bin/python", "home/me/a/.venv/pyvenv.cfg", "home/me/.pyenv/versions/3 -> 3.12", "home/me/.pyenv/versions/3.12/bin/python"},
			"home/me/.pyenv home/me/a/.venv"},
		{"one of uv's", "ROOT/home/me/a/.venv/bin", nil, []string{"home/me/a/.venv/bin/python3 -> python", "home/me/a/.venv/bin/python -> ROOT/home/me/.local/share/uv/python/cpython-3.12/bin/python", "home/me/a/.venv/pyvenv.cfg", "home/me/.local/share/uv/python/cpython-3.12/bin/python"},
			"home/me/.local/share/uv/python home/me/a/.venv"},
		{"a home that is a repository", "ROOT/home/me/.local/bin", nil, []string{"home/me/.git/HEAD", "home/me/.local/bin/x -> ../opt/x", "home/me/.local/opt/x"}, "home/me/.local/bin home/me/.local/bin/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{"PATH": c.path}
			maps.Copy(env, c.env)
			p, root := made(t, "home/me/b", env, append(c.names, "home/me/b/")...)
			if got := below(root, slices.Concat(p.Files.Read, p.Files.CopyOnWrite)); got != c.want {
				t.Errorf("shown: %q\nwant   %q", got, c.want)
			}
			if err := sound(p); err != nil {
				t.Error(err)
			}
			if got := p.Env.Set["PATH"]; c.path != "" && got != strings.ReplaceAll(c.path, "ROOT", root) {
				t.Errorf("PATH is %s", got)
			}
		})
	}
}

// TestNixProfileIsFollowed: profiles are links of the user's in /nix/var and in the home, and packages are shown.
func TestNixProfileIsFollowed(t *testing.T) {
	if _, err := os.Stat("/nix/store"); err != nil {
		t.Skip("needs /nix/store: ", err)
	}
	profile, err := filepath.EvalSymlinks("/nix/var/nix/profiles/default")
	if err != nil {
		t.Skip("needs a profile: ", err)
	}
	root := fixture.Tree(t, "home/me/.nix-profile -> /nix/var/nix/profiles/default", "ws/")
	env := func(name string) string {
		return map[string]string{"HOME": root + "/home/me", "PATH": root + "/home/me/.nix-profile/bin"}[name]
	}
	p := New(root+"/ws", env, nil).Policy(true)
	if at := resolve.New().Find(root + "/home/me/.nix-profile"); at.Path != profile || !slices.Contains(p.Files.Read, root+"/home/me/.nix-profile") {
		t.Errorf("shown: %v", p.Files.Read)
	}
}
