package presets

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/trust"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// made builds a preset for a made-up home ROOT/home/me, with ROOT/tmp in place
// of /tmp. In the variables' values ROOT is the tree's root.
func made(t *testing.T, workspace string, env map[string]string, names ...string) (policy.Policy, string) {
	t.Helper()
	root := fixture.Tree(t, append([]string{"home/me/", "tmp/"}, names...)...)
	get := func(name string) string {
		if v, ok := env[name]; ok {
			return strings.ReplaceAll(v, "ROOT", root)
		}
		return map[string]string{"HOME": root + "/home/me"}[name]
	}
	return New(filepath.Join(root, workspace), get, []string{root + "/tmp"}).Policy(true), root
}

// below returns those of paths that lie below root, without it.
func below(root string, paths []string) string {
	var out []string
	for _, p := range paths {
		if rest, found := strings.CutPrefix(p, root+"/"); found {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// What writes the shims of installed programs anew, as "pip install" does by pyenv, writes copies.
func TestWorkspaceCopiesShims(t *testing.T) {
	names := []string{"ws/", "home/me/.pyenv/shims/python", "home/me/.pyenv/bin/pyenv", "home/me/.rbenv/bin/rbenv", "opt/asdf/shims/node", "home/me/.nodenv/shims/node"}
	env := map[string]string{"PATH": "ROOT/home/me/.pyenv/shims:ROOT/home/me/.rbenv/bin:ROOT/opt/asdf/shims", "ASDF_DATA_DIR": "ROOT/opt/asdf"}
	p, root := made(t, "ws", env, names...)
	if got, want := below(root, p.Files.CopyOnWrite), "home/me/.pyenv/shims opt/asdf/shims"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := below(root, p.Files.Read); strings.Contains(got, "shims") {
		t.Errorf("shown twice: %s", got)
	}
}

func TestWorkspaceFindsToolchains(t *testing.T) {
	tests := []struct {
		name  string
		path  string
		env   map[string]string
		names []string
		want  string
	}{
		{"rust without its credentials", "ROOT/home/me/.cargo/bin", nil,
			[]string{"home/me/.cargo/bin/rustup", "home/me/.cargo/bin/cargo -> rustup", "home/me/.cargo/credentials.toml", "home/me/.rustup/settings.toml"},
			"home/me/.cargo/bin home/me/.rustup"},
		{"pyenv by its shims", "ROOT/home/me/.pyenv/shims:ROOT/home/me/.pyenv/bin", nil,
			[]string{"home/me/.pyenv/shims/python", "home/me/.pyenv/bin/", "home/me/.pyenv/versions/3/bin/python"}, "home/me/.pyenv"},
		{"a Go that a link leads to", "ROOT/home/me/bin", nil, []string{"home/me/bin/go -> ../../../sdk/go1/bin/go", "sdk/go1/bin/go", "sdk/go1/VERSION"}, "home/me/bin sdk/go1"},
		{"a link in a place that a tool can have written", "ROOT/bin", nil, []string{"bin/go -> ../sdk/go1/bin/go", "sdk/go1/bin/go", "sdk/go1/VERSION"}, "bin"},
		{"a node prefix", "ROOT/home/me/n/20/bin", nil, []string{"home/me/n/20/bin/node", "home/me/n/20/lib/node_modules/npm/x"}, "home/me/n/20"},
		{"a conda environment with its installation", "ROOT/home/me/conda/envs/x/bin", nil,
			[]string{"home/me/conda/conda-meta/", "home/me/conda/envs/x/bin/python", "home/me/conda/envs/x/conda-meta/"}, "home/me/conda"},
		{"only the file of a tool that belongs to nothing", "ROOT/home/me/.local/bin", nil,
			[]string{"home/me/.local/bin/tool -> ../../src/tool/tool", "home/me/src/tool/tool", "home/me/src/tool/.env"}, "home/me/.local/bin home/me/.local/bin/tool"},
		{"a toolchain that a variable names", "ROOT/opt/cargo/bin", map[string]string{"CARGO_HOME": "ROOT/opt/cargo"},
			[]string{"opt/cargo/bin/cargo", "opt/cargo/credentials"}, "opt/cargo/bin"},
		{"Homebrew's links", "ROOT/brew/bin", nil, []string{"brew/bin/x -> ../Cellar/x/1/bin/x", "brew/Cellar/x/1/bin/x"}, "brew"},
		{"a JDK that a variable names", "", map[string]string{"JAVA_HOME": "ROOT/jdk"}, []string{"jdk/bin/java", "jdk/release"}, "jdk"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"PATH": tt.path}
			for k, v := range tt.env {
				env[k] = v
			}
			p, root := made(t, "ws", env, append(tt.names, "ws/")...)
			if got := below(root, p.Files.Read); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if err := sound(p); err != nil {
				t.Error(err)
			}
			if got := p.Env.Set["PATH"]; tt.path != "" && got != strings.ReplaceAll(tt.path, "ROOT", root) {
				t.Errorf("PATH is %s", got)
			}
		})
	}
}

func sound(p policy.Policy) error {
	_, err := resolve.Files(p.Files, CheckWorkspace)
	return errors.Join(p.Validate(), err)
}

// What PATH, variables and links name is not believed where it would show a
// secret, or where a tool could have put it.
func TestWorkspaceIsNotLedAstray(t *testing.T) {
	secret := []string{"home/me/.ssh/key", "home/me/.aws/credentials", "home/me/.config/gh/hosts.yml", "outside/bin/x", "outside/VERSION"}
	tests := []struct {
		name  string
		path  string
		env   map[string]string
		names []string
	}{
		{"the home in PATH", "ROOT/home/me:ROOT/home:ROOT:/", nil, nil},
		{"secrets in PATH", "ROOT/home/me/.ssh:ROOT/home/me/.config", nil, nil},
		{"a directory below a secret in PATH", "ROOT/home/me/.aws/bin", nil, []string{"home/me/.aws/bin/x"}},
		{"the workspace in PATH", "ROOT/ws/bin:ROOT/ws/tools", nil, []string{"ws/bin/x -> ../../outside/bin/x", "ws/tools/"}},
		{"a link of the workspace in PATH", "ROOT/ws/bin", nil, []string{"ws/bin -> ../outside/bin"}},
		{"a trusted link to a link of the workspace", "ROOT/cur", nil, []string{"cur -> ws/bin", "ws/bin -> ../outside/bin"}},
		{"a link of the shared /tmp in PATH", "ROOT/tmp/bin", nil, []string{"tmp/bin -> ../outside/bin"}},
		{"relative and empty directories in PATH", ":.:outside/bin:", nil, nil},
		{"variables that name secrets", "", map[string]string{"GOROOT": "ROOT/home/me", "JAVA_HOME": "ROOT/home/me/.ssh", "CARGO_HOME": "ROOT/home/me", "GOCACHE": "ROOT/home/me/.ssh",
			"GOMODCACHE": "ROOT/home/me", "GOPATH": "ROOT/ws/link", "PIP_CACHE_DIR": "ROOT"}, []string{"ws/link -> ../outside"}},
		{"files of the workspace that mean settings elsewhere", "", nil,
			[]string{"ws/.env", "ws/.gitconfig", "ws/.tool-versions", "ws/.holdfast.json", "ws/go.env", "ws/.config/go/env"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"PATH": tt.path}
			for k, v := range tt.env {
				env[k] = v
			}
			p, root := made(t, "ws", env, slices.Concat(secret, []string{"ws/"}, tt.names)...)
			if got := below(root, slices.Concat(p.Files.Read, p.Files.CopyOnWrite)); got != "" {
				t.Errorf("shown: %s", got)
			}
			if got := below(root, p.Files.Write); got != "ws" {
				t.Errorf("writable: %s", got)
			}
			if err := sound(p); err != nil {
				t.Error(err)
			}
		})
	}
}

// The policy is the same whatever the tool has left in its workspace.
func TestNothingInTheWorkspaceConfiguresTheSandbox(t *testing.T) {
	dir := fixture.Tree(t, "ws/", "out/bin/x", "out/VERSION")
	env := func(name string) string {
		return map[string]string{"HOME": dir + "/home", "PATH": dir + "/ws/bin:/usr/bin"}[name]
	}
	build := func() string {
		return granted(New(dir+"/ws", env, nil).Policy(true))
	}
	before := build()
	for _, name := range []string{".env", ".envrc", ".gitconfig", ".git/config", ".holdfast", ".holdfast.json", "go.env", ".tool-versions", ".cargo/config.toml", "package.json"} {
		p := filepath.Join(dir, "ws", name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("[user]\nname = evil\n[sandbox]\nwrite = /\nPATH=/out\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir+"/out/bin", dir+"/ws/bin"); err != nil {
		t.Fatal(err)
	}
	if after := build(); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

func granted(p policy.Policy) string {
	f := p.Files
	return strings.Join(slices.Concat(f.Read, []string{"|"}, f.Write, []string{"|"}, f.CopyOnWrite, []string{"|"}, f.Private, []string{"|"}, f.Hide,
		[]string{f.Make[0].Data}, p.Env.Environ([]string{"A=b"})), " ")
}

// A user's configuration that is a link into the workspace is not the user's.
func TestConfigurationFromTheWorkspaceIsNotRead(t *testing.T) {
	root := fixture.Tree(t, "home/me/", "ws/", "home/me/.gitconfig -> ../../ws/gitconfig", "home/me/.config/git/config", "home/me/.config/go/env -> ../../../../ws/env")
	for name, text := range map[string]string{"ws/gitconfig": "[user]\nname = evil\n", "home/me/.config/git/config": "[user]\nname = me\n", "ws/env": "GOFLAGS=evil\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) string {
		return map[string]string{"HOME": root + "/home/me", "PATH": "/usr/bin:/bin"}[name]
	}
	p := New(root+"/ws", env, nil).Policy(true)
	if got := p.Files.Make; len(got) != 1 || strings.Contains(got[0].Data, "evil") || !strings.Contains(got[0].Data, `name = "me"`) {
		t.Errorf("got %q", got)
	}
	if got, is := p.Env.Set["GOFLAGS"]; is {
		t.Errorf("GOFLAGS is %q", got)
	}
}

// What the user has set by "go env -w" is so for the tool, unless the environment says otherwise; then the tool gets it from there.
func TestSettingsOfGoAreVariables(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"the file alone", nil, "-mod=mod"},
		{"the environment says otherwise", map[string]string{"GOFLAGS": "-x"}, ""},
		{"go reads another file", map[string]string{"GOENV": "/other"}, ""},
		{"go reads none", map[string]string{"GOENV": "off"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fixture.Tree(t, "home/me/.config/go/env", "ws/")
			if err := os.WriteFile(root+"/home/me/.config/go/env", []byte("GOFLAGS=-mod=mod\nGOPRIVATE=\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			env := func(name string) string {
				if name == "HOME" {
					return root + "/home/me"
				}
				return c.env[name]
			}
			set := New(root+"/ws", env, nil).Policy(true).Env.Set
			if got := set["GOFLAGS"]; got != c.want {
				t.Errorf("GOFLAGS is %q", got)
			}
			if got, is := set["GOPRIVATE"]; is {
				t.Errorf("GOPRIVATE is %q", got)
			}
		})
	}
}

// What lies in a temporary directory is believed where it is the user's own, and no other can have made it.
func TestWhatIsTheUsersOwnInATemporaryDirectoryIsShown(t *testing.T) {
	tests := []struct {
		name   string
		change func(root string) error
		want   string
	}{
		{"the user's own", func(string) error { return nil }, "tmp/me/gocache"},
		{"a directory that others can write to", func(root string) error { return os.Chmod(root+"/tmp/me", 0o777) }, ""},
		{"a temporary directory whose entries others can replace", func(root string) error { return os.Chmod(root+"/tmp", 0o777) }, ""},
		{"a link that leads there from outside", func(root string) error {
			return errors.Join(os.Rename(root+"/tmp/me", root+"/elsewhere"), os.Symlink("../elsewhere", root+"/tmp/me"))
		}, ""},
		{"the workspace", func(root string) error {
			return errors.Join(os.RemoveAll(root+"/tmp/me"), os.Symlink("../ws", root+"/tmp/me"), os.Mkdir(root+"/ws/gocache", 0o755))
		}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := fixture.Tree(t, "home/me/", "ws/", "tmp/me/gocache/x")
			if err := os.Chmod(root+"/tmp", 0o777|os.ModeSticky); err != nil {
				t.Fatal(err)
			}
			if err := test.change(root); err != nil {
				t.Fatal(err)
			}
			env := func(name string) string {
				return map[string]string{"HOME": root + "/home/me", "GOCACHE": root + "/tmp/me/gocache"}[name]
			}
			p := New(root+"/ws", env, []string{root + "/tmp"}).Policy(true)
			if got := below(root, p.Files.CopyOnWrite); got != test.want {
				t.Errorf("shown: %q, want %q", got, test.want)
			}
		})
	}
	if os.Geteuid() == 0 {
		root := fixture.Tree(t, "tmp/other/")
		if err := errors.Join(os.Chmod(root+"/tmp", 0o777|os.ModeSticky), os.Chown(root+"/tmp/other", 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		if trust.New("").Own(root+"/tmp/other", root+"/tmp") {
			t.Error("a directory of another user is believed")
		}
	}
}

func TestWorkspaceCaches(t *testing.T) {
	p, root := made(t, "ws", map[string]string{"GOCACHE": "ROOT/var/gocache", "PIP_CACHE_DIR": "ROOT/new/pip"},
		"ws/", "home/me/.m2/repository/x", "home/me/.m2/settings.xml", "home/me/.cargo/registry/x", "home/me/go/pkg/mod/x", "var/gocache/x", "home/me/.cache/go-build/x")
	if got, want := below(root, p.Files.CopyOnWrite), "home/me/.cargo/registry home/me/.m2/repository home/me/go/pkg/mod var/gocache"; got != want {
		t.Errorf("copied on write: %s, want %s", got, want)
	}
	if got, want := below(root, p.Files.Private), "home/me new/pip tmp"; got != want {
		t.Errorf("private: %s, want %s", got, want)
	}
	if got, want := below(root, p.Files.Hide), "home/me/.m2/settings.xml"; got != want {
		t.Errorf("hidden: %s, want %s", got, want)
	}
	if err := sound(p); err != nil {
		t.Error(err)
	}
}

func TestWorkspaceRefusesMoreThanAProject(t *testing.T) {
	for _, ws := range []string{"home/me", "home", "tmp", "", "none"} {
		p, _ := made(t, ws, nil)
		var e *policy.PolicyError
		if err := sound(p); !errors.As(err, &e) {
			t.Errorf("ROOT/%s: %v", ws, err)
		}
	}
	for _, ws := range []string{"/", "/usr", "/etc", "/tmp", "/var", "/proc", "/proc/self", "/dev", "/none", "bad\x00", "/etc/default", "/usr/lib", "/usr/local/bin", "/lib/systemd"} {
		var e *policy.PolicyError
		if err := sound(Build(ws, true)); !errors.As(err, &e) {
			t.Errorf("%q: %v", ws, err)
		}
	}
	for _, ws := range []string{"/usr/src", "/usr/local/src", "/srv"} {
		if _, err := os.Stat(ws); err == nil && sound(Build(ws, true)) != nil {
			t.Errorf("%s: %v", ws, sound(Build(ws, true)))
		}
	}
	for _, ws := range []string{"ws", "home/me/p", "tmp/p"} {
		if p, _ := made(t, ws, nil, ws+"/"); sound(p) != nil {
			t.Errorf("ROOT/%s: %v", ws, sound(p))
		}
	}
}

func TestWorkspaceHides(t *testing.T) {
	root := fixture.Tree(t, "home/me/.config/gh/hosts.yml", "home/me/.config/x")
	env := func(name string) string { return map[string]string{"HOME": root + "/home/me"}[name] }
	p := New(root+"/home/me/.config", env, nil).Policy(false)
	l, err := resolve.Files(p.Files, CheckWorkspace)
	if err != nil || !slices.ContainsFunc(l.Entries, func(e resolve.Entry) bool { return e.Kind == pathrule.Hide && e.Path == root+"/home/me/.config/gh" }) {
		t.Errorf("a secret of the workspace is not hidden: %v, %v", l, err)
	}
}

func TestHome(t *testing.T) {
	tests := []struct{ name, home, want string }{
		{"none", "", noHome},
		{"the root", "/", noHome},
		{"one that does not exist", "/nonexistent", noHome},
		{"a relative one", "home", noHome},
		{"a system directory", "/usr/share", noHome},
		{"what contains some of the system", "/var", noHome},
		{"the shared directory", "ROOT/tmp", noHome},
		{"a home", "ROOT/home/me", "ROOT/home/me"},
		{"a home behind a link", "ROOT/h/me", "ROOT/h/me"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, root := made(t, "ws", map[string]string{"HOME": tt.home}, "ws/", "h -> home")
			want := strings.ReplaceAll(tt.want, "ROOT", root)
			if got := p.Env.Set["HOME"]; got != want || !slices.Contains(p.Files.Private, want) {
				t.Errorf("got %s, private %v, want %s", got, p.Files.Private, want)
			}
			if err := sound(p); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWorkspaceBehindALinkIsSafeToGitByBothNames(t *testing.T) {
	p, root := made(t, "w", nil, "w -> real", "real/x")
	for _, dir := range []string{"/w", "/real"} {
		if !strings.Contains(p.Files.Make[0].Data, "directory = \""+root+dir+"\"") {
			t.Errorf("%s is not in %q", dir, p.Files.Make[0].Data)
		}
	}
	if l, err := resolve.Files(p.Files, CheckWorkspace); err != nil || !slices.Contains(l.Links, resolve.Link{Path: root + "/w", Target: "real"}) {
		t.Errorf("%v, %v", l.Links, err)
	}
}

// On this host, whoever runs the test.
func TestPresetsOfThisHost(t *testing.T) {
	dir := t.TempDir()
	for name, p := range map[string]policy.Policy{"Workspace": Build(dir, true), "ReadOnly": Build(dir, false)} {
		if err := sound(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		l, _ := resolve.Files(p.Files, CheckWorkspace)
		for _, e := range l.Entries {
			if e.Kind != pathrule.Hide && pathrule.WithinAny(e.Path, []string{"/etc/shadow", "/var/log", "/run", "/proc"}) {
				t.Errorf("%s shows %s", name, e.Path)
			}
		}
		if (len(p.Files.Write) == 0) != (name == "ReadOnly") {
			t.Errorf("%s writes %v", name, p.Files.Write)
		}
	}
}

func BenchmarkWorkspace(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		Build(dir, true)
	}
}
