package presets

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// refusal builds Workspace(ROOT/ws), or ReadOnly, for a made-up home and returns New's
// error for it.
func refusal(t *testing.T, write bool, ws string, env map[string]string, names ...string) error {
	t.Helper()
	root := fixture.Tree(t, append([]string{"home/me/", "tmp/"}, names...)...)
	get := func(name string) string {
		return strings.ReplaceAll(map[string]string{"HOME": "ROOT/home/me", "PATH": env["PATH"], "XDG_CONFIG_HOME": env["XDG_CONFIG_HOME"]}[name], "ROOT", root)
	}
	for _, name := range []string{"HOME", "PATH", "XDG_CONFIG_HOME"} {
		t.Setenv(name, get(name)) // New's error looks again
	}
	return sound(New(filepath.Join(root, ws), get, []string{root + "/tmp"}).Policy(write))
}

// TestWorkspacesThatAreNoProjects: programs outside execute or obey what lies there.
func TestWorkspacesThatAreNoProjects(t *testing.T) {
	kerneltest.Long(t)
	for _, tt := range []struct {
		ws, path, xdg, why string
		more               []string
	}{
		{ws: "home/me/bin", why: "~/bin"},
		{ws: "home/me/bin/sub", why: "~/bin"},
		{ws: "home/me/.local", why: "~/.local"},
		{ws: "home/me/.local/bin", why: "~/.local"},
		{ws: "home/me/.local/share", why: "~/.local"},
		{ws: "home/me/.local/share/applications", why: "~/.local"},
		{ws: "home/me/.config", why: "~/.config"},
		{ws: "home/me/.config/systemd/user", why: "~/.config"},
		{ws: "home/me/.config/autostart", why: "~/.config"},
		{ws: "home/me/.config/x", why: "~/.config"},
		{ws: "home/me/.vim", why: "~/.vim"},
		{ws: "home/me/.git/worktrees/x", why: "~/.git"},
		{ws: "home/me/Library/LaunchAgents", why: "~/Library"},
		{ws: "xdg/autostart", xdg: "ROOT/xdg", why: "XDG_CONFIG_HOME"},
		{ws: "home/me/tools", path: "ROOT/home/me/tools", why: "a directory of PATH"},
		{ws: "home/me/tools", path: "ROOT/home/me/tools", more: []string{"home/me/tools/.git/HEAD", "home/me/.git/HEAD"}, why: "a directory of PATH"},
		{ws: "home/me/tools/bin", path: "/bin:ROOT/home/me/tools/bin", why: "a directory of PATH"},
		{ws: "home/me/go", path: "ROOT/home/me/go/bin", more: []string{"home/me/go/bin/x"}, why: "contains ~/go"},
		{ws: "home/me/link", more: []string{"home/me/link -> .config", "home/me/.config/"}, why: "~/.config"},
	} {
		t.Run(tt.ws, func(t *testing.T) {
			env := map[string]string{"PATH": tt.path, "XDG_CONFIG_HOME": tt.xdg}
			more := tt.more
			if len(more) == 0 {
				more = []string{tt.ws + "/"}
			}
			var e *policy.PolicyError
			err := refusal(t, true, tt.ws, env, more...)
			if !errors.As(err, &e) || e.Field != "Files.Write[0]" || e.Remedy == "" || !strings.Contains(e.Problem, tt.why) {
				t.Errorf("got %v, want a PolicyError of Files.Write[0] with %q", err, tt.why)
			}
			if err := refusal(t, false, tt.ws, env, more...); err != nil {
				t.Errorf("to be read it is refused, too: %v", err)
			}
		})
	}
	for _, ws := range []string{"/run", "/run/user", "/run/user/1002", "/run/lock", "/usr", "/etc", "/opt"} {
		if _, err := os.Stat(ws); err != nil {
			continue
		}
		for name, p := range map[string]policy.Policy{"Workspace": Build(ws, true), "ReadOnly": Build(ws, false)} {
			var e *policy.PolicyError
			if err := sound(p); !errors.As(err, &e) || !strings.Contains(e.Problem, "workspace of a preset") {
				t.Errorf("%s(%s): %v", name, ws, err)
			}
		}
	}
}

// TestAHomeIsNoWorkspace: as in images with HOME=/app and the project in /app. The error names HOME, and what to do, not the private directory.
func TestAHomeIsNoWorkspace(t *testing.T) {
	for _, ws := range []string{"home/me", "link"} {
		for _, write := range []bool{true, false} {
			var e *policy.PolicyError
			err := refusal(t, write, ws, nil, "link -> home/me", "home/me/project/")
			if !errors.As(err, &e) || !strings.Contains(e.Problem, "the home directory (HOME)") || !strings.Contains(e.Remedy, "another HOME") {
				t.Errorf("%s, to write %v: %v", ws, write, err)
			}
		}
	}
	if err := refusal(t, true, "home/me/project", nil, "home/me/project/"); err != nil {
		t.Errorf("a project in the home: %v", err)
	}
}

// TestAFileIsNotAWorkspace, nor is a link to one, or the whole file system. The error names a field that the caller sees filled.
func TestAFileIsNotAWorkspace(t *testing.T) {
	for _, ws := range []string{"srv/main.go", "srv/link"} {
		for _, write := range []bool{true, false} {
			var e *policy.PolicyError
			err := refusal(t, write, ws, nil, "srv/main.go", "srv/link -> main.go")
			if !errors.As(err, &e) || !strings.Contains(e.Problem, "it is a file") || strings.Contains(e.Field, "Hide") {
				t.Errorf("%s, to write %v: %v", ws, write, err)
			}
		}
	}
	for write, field := range map[bool]string{true: "Files.Write[", false: "Files.Read["} {
		var e *policy.PolicyError
		if err := Build("/", write).Validate(); !errors.As(err, &e) || !strings.HasPrefix(e.Field, field) || e.Value != "/" || e.Remedy == "" {
			t.Errorf("/, to write %v: %v", write, err)
		}
	}
}

// TestWorkspacesThatAreProjects is the other side: ordinary directories.
func TestWorkspacesThatAreProjects(t *testing.T) {
	for _, tt := range []struct {
		ws, path string
		more     []string
	}{
		{ws: "home/me/project"},
		{ws: "home/me/src/go/project"},
		{ws: "home/me/project", path: "ROOT/home/me/project/bin", more: []string{"home/me/project/bin/"}},
		{ws: "home/me/project/bin", path: "ROOT/home/me/project/bin", more: []string{"home/me/project/.git/HEAD"}},
		{ws: "home/me/project", path: "ROOT/home/me/project/node_modules/.bin", more: []string{"home/me/project/node_modules/.bin/"}},
		{ws: "home/me/go/src/project", path: "ROOT/home/me/go/bin", more: []string{"home/me/go/bin/"}},
		{ws: "home/me/.cursor/worktrees/project/a"},
		{ws: "home/me/.agent/workspace"},
		{ws: "home/me/project/.config"},
		{ws: "home/me/binary"},
		{ws: "tmp/x"},
		{ws: "srv/x"},
	} {
		if err := refusal(t, true, tt.ws, map[string]string{"PATH": tt.path}, append(tt.more, tt.ws+"/")...); err != nil {
			t.Errorf("%s: %v", tt.ws, err)
		}
	}
	if err := sound(Build(t.TempDir(), true)); err != nil {
		t.Error(err)
	}
}

// TestWorkspaceBehindALinkOfATool: what a tool was let write in an earlier run leads
// the next one nowhere else.
func TestWorkspaceBehindALinkOfATool(t *testing.T) {
	for _, tt := range []struct {
		name, ws string
		names    []string
		refused  bool
	}{
		{"a link out of a directory that may have been a workspace", "home/me/project/pkg", []string{"home/me/project/pkg -> ../other", "home/me/other/"}, true},
		{"and a directory below it", "home/me/project/pkg/sub", []string{"home/me/project/pkg -> ../other", "home/me/other/sub/"}, true},
		{"a link of the user's to such a link", "home/me/short", []string{"home/me/short -> project/pkg", "home/me/project/pkg -> ../other", "home/me/other/"}, true},
		{"the place that it leads to", "home/me/other", []string{"home/me/project/pkg -> ../other", "home/me/other/"}, false},
		{"a link that stays beside itself", "home/me/src/current", []string{"home/me/src/current -> v2", "home/me/src/v2/"}, false},
		{"a link in the home", "home/me/project", []string{"home/me/project -> ../../data/project", "data/project/"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, write := range []bool{true, false} {
				err := refusal(t, write, tt.ws, nil, tt.names...)
				var e *policy.PolicyError
				if got := errors.As(err, &e); got != tt.refused || tt.refused && (!strings.Contains(e.Problem, "home/me/project/pkg") || !strings.Contains(e.Remedy, "/other")) {
					t.Errorf("to write %v: %v", write, err)
				}
			}
		})
	}
}

// TestNixsStoreIsShownWithoutItsDaemon: its socket lies in /nix/var and is everybody's.
func TestNixsStoreIsShownWithoutItsDaemon(t *testing.T) {
	for _, p := range append(slices.Clone(systemTrees), osTrees...) {
		if pathrule.Within("/nix/var", p) || pathrule.Within("/var/guix", p) {
			t.Errorf("%s is shown", p)
		}
	}
	for _, p := range []string{"/nix/store", "/gnu/store"} {
		if !slices.Contains(systemTrees, p) {
			t.Errorf("%s is not shown", p)
		}
	}
	if !slices.Contains(AlwaysHidden, "/nix/var") {
		t.Error("/nix/var is not hidden from a caller who adds /nix")
	}
}

// TestDotnetWithoutItsKeys: the toolchain works from PATH, and the store of
// certificates beside it is not there.
func TestDotnetWithoutItsKeys(t *testing.T) {
	p, root := made(t, "ws", map[string]string{"PATH": "ROOT/home/me/.dotnet:ROOT/home/me/.dotnet/tools"}, "ws/",
		"home/me/.dotnet/dotnet", "home/me/.dotnet/sdk/9/x", "home/me/.dotnet/shared/x", "home/me/.dotnet/tools/t", "home/me/.dotnet/corefx/cryptography/x509stores/my/k.pfx",
		"home/me/.dotnet/mystery")
	if got, want := below(root, p.Files.Read), "home/me/.dotnet/dotnet home/me/.dotnet/sdk home/me/.dotnet/shared home/me/.dotnet/tools"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := p.Env.Set["PATH"], root+"/home/me/.dotnet:"+root+"/home/me/.dotnet/tools"; got != want {
		t.Errorf("PATH is %s, want %s", got, want)
	}
	if !slices.Contains(p.Files.Hide, root+"/home/me/.dotnet/corefx") {
		t.Errorf("the keys are not hidden: %v", p.Files.Hide)
	}
	if err := sound(p); err != nil {
		t.Error(err)
	}
}

// TestHomeSecretsAreHidden from a caller who adds a directory around them.
func TestHomeSecretsAreHidden(t *testing.T) {
	names := strings.Fields(`.cache/huggingface/token .config/doctl/config.yaml .config/hcloud/cli.toml .config/fly/x .config/netlify/config.json
		.databrickscfg .snowsql/config .kaggle/kaggle.json .authinfo .msmtprc .ssh/id_ed25519
		.dotnet/corefx/cryptography/x509stores/my/k.pfx .microsoft/usersecrets/x/secrets.json .aspnet/DataProtection-Keys/k.xml`)
	files := []string{"ws/", "home/me/.config/ordinary", "home/me/.cache/huggingface/hub/model"}
	for _, name := range names {
		files = append(files, "home/me/"+name)
	}
	p, root := made(t, "ws", nil, files...)
	for _, name := range names {
		if !pathrule.WithinAny(root+"/home/me/"+name, p.Files.Hide) {
			t.Errorf("%s is not hidden", name)
		}
	}
	for _, name := range []string{".config/ordinary", ".cache/huggingface/hub/model"} {
		if pathrule.WithinAny(root+"/home/me/"+name, p.Files.Hide) {
			t.Errorf("%s is hidden", name)
		}
	}
}

// TestPackageDatabasesAreShown to those who ask what is installed, and no directory around them.
func TestPackageDatabasesAreShown(t *testing.T) {
	for _, p := range []string{"/var/lib/dpkg", "/var/lib/rpm", "/var/lib/apt"} {
		if !slices.Contains(systemTrees, p) {
			t.Errorf("%s is not shown", p)
		}
	}
	for _, p := range []string{"/var/lib/docker", "/var/lib/postgresql", "/var/cache/debconf", "/var/log/dpkg.log", "/sys/class", "/sys/fs", "/sys/kernel"} {
		if pathrule.WithinAny(p, systemTrees) {
			t.Errorf("%s is shown", p)
		}
	}
}
