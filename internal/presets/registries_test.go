package presets

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// fakeTools makes a machine whose tools are these scripts and whose files are these, below a HOME and apt's root,
// and returns its asker and its directory.
func fakeTools(t *testing.T, scripts, files map[string]string) (*asker, string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(p, text string, mode os.FileMode) {
		t.Helper()
		p = filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range scripts {
		write("bin/"+name, "#!/bin/sh\n"+text+"\n", 0o755)
	}
	for name, text := range files {
		write(name, text, 0o644)
	}
	write("home/project/file", "", 0o644)
	t.Setenv("HOME", root+"/home")
	t.Setenv("CARGO_HOME", "")
	t.Setenv("PATH", root+"/home/project/bin:relative:"+root+"/bin:/usr/bin:/bin")
	return newAsker(root+"/home/project", root, nil), root
}

const (
	goScript = `[ "$*" = "env -json GOPROXY GOSUMDB" ] && [ "$(pwd)" = / ] && echo '{"GOPROXY":"`
	cargoMy  = "[source.crates-io]\nreplace-with = 'my' # comment = \"\n[source.my]\nregistry = \"sparse+https://u:secret@cargo.example/index/\"\n"
)

// npmScript prints a registry, and a list with the settings of scopes.
func npmScript(url, list string) map[string]string {
	return map[string]string{"npm": `case "$*" in "config get registry --global") echo '` + url + `';; "config list --global") cat <<'E'` + "\n" + list + "E\n;; *) exit 1;; esac"}
}

func goSet(proxy, sums string) map[string]string {
	return map[string]string{"go": goScript + proxy + `","GOSUMDB":"` + sums + `"}'`}
}

func TestRegistriesAreWhatToolsAreSetToUse(t *testing.T) {
	pip := func(lines string) map[string]string { return map[string]string{"pip": "cat <<'E'\n" + lines + "\nE"} }
	npm := func(url string) map[string]string {
		return npmScript(url, "")
	}
	for _, c := range []struct {
		what           string
		tool           string
		scripts, files map[string]string
		want           string // the hosts, or what is in the error
		fails          bool
	}{
		{"go's proxies, separated by commas and bars", "go", goSet("https://a.example/x,http://B.example:8081|direct,https://a.example", "sum.example"), nil, "a.example:443 b.example:8081 sum.example:443", false},
		{"go's database of sums with a key and a URL", "go", goSet("p.example", "sum.example+1234+abc https://sums.example:44/x"), nil, "p.example:443 sums.example:44", false},
		{"go without a database of sums", "go", goSet("https://a.example", "off"), nil, "a.example:443", false},
		{"go with a proxy of this machine's files", "go", goSet("file:///srv/mod", "off"), nil, "", false},
		{"go without a proxy", "go", goSet("direct", "sum.example"), nil, "GOPROXY", true},
		{"go that prints no JSON", "go", map[string]string{"go": "echo hello"}, nil, "no JSON", true},
		{"npm's registry", "npm", npm("https://u:secret@npm.example/x/"), nil, "npm.example:443", false},
		{"npm's registries of scopes", "npm", npmScript("https://npm.example/", `; "user" config from /x
@acme:registry = "https://u:x@scope.example:8443/y/"
//scope.example/:_authToken = (protected)
; @old:registry = "https://no.example/" ; overridden by cli
@acme:other = "https://no.example/"
`), nil, "npm.example:443 scope.example:8443", false},
		{"a registry of a scope that npm does not print", "npm", npmScript("https://npm.example/", "@acme:registry = (protected)\n"), nil, "@acme:registry", true},
		{"a registry of a scope that is no URL", "npm", npmScript("https://npm.example/", "@acme:registry = \"secret\"\n"), nil, "@acme:registry", true},
		{"npm without one", "npm", npm("undefined"), nil, "registry", true},
		{"an address of IPv6", "npm", npm("http://[2001:db8::1]:4873/"), nil, "[2001:db8::1]:4873", false},
		{"every host", "npm", npm("https://*/"), nil, "more than one host", true},
		{"hosts below a name", "npm", npm("https://*.example/"), nil, "more than one host", true},
		{"a range of ports", "npm", npm("https://a.example:1-secret/"), nil, "no URL", true},
		{"the tool's own loopback", "npm", npm("http://localhost:4873/"), nil, "Network.Loopback", true},
		{"two lines", "npm", npm("https://a.example/\nhttps://secret.example/"), nil, "no URL", true},
		{"a secret in what is no URL", "npm", npm("https://u:secret@a b.example/"), nil, "no URL", true},
		{"another scheme", "npm", npm("ftp://u:secret@a.example/"), nil, "neither http nor https", true},
		{"pip's indexes", "pip", pip(`global.extra-index-url='\nhttps://b.example/\nhttps://c.example/'` + "\nglobal.index-url='https://u:secret@a.example/simple'\nglobal.cert='https://no.example'"), nil, "a.example:443 b.example:443 c.example:443", false},
		{"pip's variable comes first", "pip", pip(":env:.index-url='https://env.example'\nglobal.index-url='https://a.example/simple'"), nil, "env.example:443", false},
		{"pip as a module of python3", "pip", map[string]string{"pip": "exit 127", "python3": `[ "$*" = "-m pip config list" ] && echo "global.index-url='https://a.example'"`}, nil, "a.example:443", false},
		{"pip without an index", "pip", pip("global.extra-index-url='https://b.example'"), nil, "global.index-url", true},
		{"cargo's replacement", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": cargoMy}, "cargo.example:443", false},
		{"cargo's replacement by a registry, and another registry", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": "[build]\nrustflags = [\n \"-C\", # [\n]\n[source]\ncrates-io.replace-with=\"my\"\n[registries]\n\"my\".index = \"https://b.example\"\n[registries.a]\nindex = \"sparse+https://a.example:8443/\"\n"}, "a.example:8443 b.example:443", false},
		{"cargo's replacement by a directory", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": "[source.crates-io]\nreplace-with = \"v\"\n[source.v]\ndirectory = \"/srv/vendor\"\n"}, "", false},
		{"cargo without a replacement", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": "[net]\noffline = false\n"}, "source.crates-io.replace-with", true},
		{"cargo without a file", "cargo", map[string]string{"cargo": ""}, nil, "source.crates-io.replace-with", true},
		{"cargo's replacements in a circle", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": "[source.crates-io]\nreplace-with = \"crates-io\"\n"}, "source.crates-io.replace-with", true},
		{"cargo's settings as an inline table", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": cargoMy + "[registries]\nx = { index = \"https://secret.example\" }\n"}, "not understood", true},
		{"a table of cargo's within a string of several lines", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": "x = '''\n" + cargoMy + "'''\n"}, "several lines", true},
		{"a table of cargo's within an array", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": "[build]\nx = [\n" + cargoMy}, "without its end", true},
		{"cargo's file that includes another", "cargo", map[string]string{"cargo": ""}, map[string]string{"home/.cargo/config.toml": "include = [\"x\"]\n" + cargoMy}, "includes", true},
		{"apt's lists and stanzas", "apt", map[string]string{"apt-get": ""}, map[string]string{
			"etc/apt/sources.list":               "# deb http://no.example x y\ndeb [arch=amd64 signed-by=/k] http://u:secret@a.example/debian stable main # x\ndeb cdrom:[Debian 12]/ x main\ndeb file:/srv/apt x main\n",
			"etc/apt/sources.list.d/b.sources":   "Types: deb\nURIs: https://b.example/x\n# http://no.example\n  https://c.example:8443/\nSuites: x\n\nEnabled: no\nURIs: http://no.example\n",
			"etc/apt/sources.list.d/x.list.save": "deb http://no.example x y\n",
		}, "a.example:80 b.example:443 c.example:8443", false},
		{"apt's mirror lists", "apt", map[string]string{"apt-get": ""}, map[string]string{"etc/apt/sources.list": "deb mirror+http://m.example/list x y\n"}, "neither http nor https", true},
		{"apt without sources", "apt", map[string]string{"apt-get": ""}, nil, "sources.list", true},
		{"a tool that is not known", "brew", nil, nil, "name one of apt, bundler, cargo", true},
		{"a tool that fails, and prints a secret", "npm", map[string]string{"npm": "echo secret; echo secret >&2; exit 3"}, nil, "exit status 3", true},
		{"a tool that prints without end", "npm", map[string]string{"npm": "while :; do echo secretsecretsecretsecretsecretsecretsecretsecretsecretsecretsecretsecretsecretsecret; done"}, nil, "failed", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			a, _ := fakeTools(t, c.scripts, c.files)
			hosts, err := a.hosts(t.Context(), []string{c.tool, c.tool}) // the second adds nothing
			if got := strings.Join(hosts, " "); !c.fails && (err != nil || got != c.want) {
				t.Errorf("hosts %q, error %v; want %q", got, err, c.want)
			}
			var typed *policy.PolicyError
			if c.fails && (hosts != nil || !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) || typed.Value != c.tool) {
				t.Errorf("hosts %q, error %v; want a PolicyError with %q", hosts, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has what a setting says: %v", err)
			}
		})
	}
}

func TestRegistriesOfSeveralToolsAreOneList(t *testing.T) {
	scripts := goSet("https://a.example", "off")
	scripts["npm"] = npmScript("https://b.example/", "")["npm"]
	a, _ := fakeTools(t, scripts, nil)
	if hosts, err := a.hosts(t.Context(), []string{"npm", "go", "npm"}); err != nil || !slices.Equal(hosts, []string{"b.example:443", "a.example:443"}) {
		t.Errorf("hosts %q, error %v", hosts, err)
	}
	_, err := a.hosts(t.Context(), []string{"npm", "gradle", "brew"})
	if err == nil || !strings.Contains(err.Error(), "gradle") || !strings.Contains(err.Error(), "brew") {
		t.Errorf("error %v; want both tools that cannot be asked", err)
	}
}

// What a tool has written is neither run nor read: programs of the workspace and links to them, and settings that
// a variable names there.
func TestRegistriesAreNotAskedOfTheWorkspace(t *testing.T) {
	planted := map[string]string{"home/project/bin/npm": "#!/bin/sh\necho https://evil.example/\n", "home/project/cargo/config.toml": cargoMy}
	_, root := fakeTools(t, map[string]string{"npm": `[ "$2" = list ] || echo "https://${SET_THERE:-good}.example/"`, "cargo": ""}, planted)
	if err := os.Chmod(root+"/home/project/bin/npm", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SET_THERE", root+"/home/project/npmrc")
	t.Setenv("CARGO_HOME", root+"/home/project/cargo")
	a := newAsker(root+"/home/project", root, nil)
	if hosts, err := a.hosts(t.Context(), []string{"npm"}); err != nil || !slices.Equal(hosts, []string{"good.example:443"}) {
		t.Errorf("hosts %q, error %v", hosts, err)
	}
	if hosts, err := a.hosts(t.Context(), []string{"cargo"}); err == nil || !strings.Contains(err.Error(), "a tool can have written it") {
		t.Errorf("cargo's settings in the workspace: hosts %q, error %v", hosts, err)
	}
	if err := os.Remove(root + "/bin/npm"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root+"/home/project/bin/npm", root+"/bin/npm"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", root+"/home/project/bin:"+root+"/bin")
	a = newAsker(root+"/home/project", root, nil)
	if hosts, err := a.hosts(t.Context(), []string{"npm"}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a program of the workspace by a link: hosts %q, error %v; want that npm is not found", hosts, err)
	}
}

func TestRegistriesToolThatHangsIsEnded(t *testing.T) {
	a, _ := fakeTools(t, map[string]string{"npm": "sleep 3600 & wait"}, nil) // its child has its output
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	hosts, err := a.hosts(ctx, []string{"npm"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hosts %q, error %v; want the deadline", hosts, err)
	}
}

func TestRegistriesOfThisMachinesGo(t *testing.T) {
	dir, _ := os.Getwd()
	if _, err := newAsker(dir, "/", shared).find("go"); err != nil {
		t.Skip("there is no go on PATH")
	}
	t.Setenv("GOPROXY", "https://u:secret@mirror.example/x,direct")
	t.Setenv("GOSUMDB", "sum.example")
	hosts, err := Registries("go")
	if err != nil || !slices.Equal(hosts, []string{"mirror.example:443", "sum.example:443"}) {
		t.Errorf("hosts %q, error %v", hosts, err)
	}
}
