package presets

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestRegistriesAreWhatToolsAreSetToUse: of variables as the tools document them, and of the tools' defaults without any.
func TestRegistriesAreWhatToolsAreSetToUse(t *testing.T) {
	type env map[string]string
	for _, c := range []struct {
		what, tool string
		set        env
		want       string // the hosts, or what is in the error
		fails      bool
	}{
		{"go as it comes", "go", nil, "proxy.golang.org:443 sum.golang.org:443", false},
		{"go's proxies, separated by commas and bars", "go", env{"GOPROXY": "https://a.example/x,http://B.example:8081|direct,https://a.example", "GOSUMDB": "sum.example"}, "a.example:443 b.example:8081 sum.example:443", false},
		{"go's database of sums with a key", "go", env{"GOPROXY": "p.example", "GOSUMDB": "sum.example+1234+abc"}, "p.example:443 sum.example:443", false},
		{"go's database of sums with a key and a URL", "go", env{"GOPROXY": "p.example", "GOSUMDB": "sum.example+1234+abc https://sums.example:44/x"}, "p.example:443 sums.example:44", false},
		{"go without a database of sums", "go", env{"GOPROXY": "https://a.example", "GOSUMDB": "off"}, "a.example:443", false},
		{"go with a proxy of this machine's files", "go", env{"GOPROXY": "file:///srv/mod", "GOSUMDB": "off"}, "", false},
		{"go without a proxy", "go", env{"GOPROXY": "direct"}, "GOPROXY", true},
		{"npm as it comes", "npm", nil, "registry.npmjs.org:443", false},
		{"npm's registry", "npm", env{"npm_config_registry": "https://u:secret@npm.example/x/"}, "npm.example:443", false},
		{"npm's registry in upper case", "npm", env{"NPM_CONFIG_REGISTRY": "https://npm.example/x/"}, "npm.example:443", false},
		{"an address of IPv6", "npm", env{"npm_config_registry": "http://[2001:db8::1]:4873/"}, "[2001:db8::1]:4873", false},
		{"every host", "npm", env{"npm_config_registry": "https://*/"}, "more than one host", true},
		{"hosts below a name", "npm", env{"npm_config_registry": "https://*.example/"}, "more than one host", true},
		{"a range of ports", "npm", env{"npm_config_registry": "https://a.example:1-secret/"}, "no URL", true},
		{"the tool's own loopback", "npm", env{"npm_config_registry": "http://localhost:4873/"}, "Network.Loopback", true},
		{"a secret in what is no URL", "npm", env{"npm_config_registry": "https://u:secret@[b.example/"}, "no URL", true},
		{"another scheme", "npm", env{"npm_config_registry": "ftp://u:secret@a.example/"}, "neither http nor https", true},
		{"pip as it comes", "pip", nil, "pypi.org:443 files.pythonhosted.org:443", false},
		{"pip's indexes", "pip", env{"PIP_INDEX_URL": "https://u:secret@a.example/simple", "PIP_EXTRA_INDEX_URL": "https://b.example/ https://c.example/"}, "a.example:443 b.example:443 c.example:443", false},
		{"cargo as it comes", "cargo", nil, "index.crates.io:443 static.crates.io:443 crates.io:443", false},
		{"cargo's further registries", "cargo", env{"CARGO_REGISTRIES_MY_INDEX": "sparse+https://my.example:8443/index/"}, "index.crates.io:443 static.crates.io:443 crates.io:443 my.example:8443", false},
		{"a tool that is not known", "maven", nil, "name the hosts yourself, or one of cargo, go, npm, pip", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, v := range os.Environ() {
				name, _, _ := strings.Cut(v, "=")
				if strings.HasPrefix(name, "PIP_") || strings.HasPrefix(strings.ToLower(name), "npm_") || strings.HasPrefix(name, "CARGO_") || name == "GOPROXY" || name == "GOSUMDB" {
					t.Setenv(name, "")
				}
			}
			for name, value := range c.set {
				t.Setenv(name, value)
			}
			hosts, err := Registries(c.tool, c.tool) // the second adds nothing
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
	t.Setenv("GOPROXY", "https://a.example")
	t.Setenv("GOSUMDB", "off")
	t.Setenv("npm_config_registry", "https://b.example/")
	if hosts, err := Registries("npm", "go", "npm"); err != nil || !slices.Equal(hosts, []string{"b.example:443", "a.example:443"}) {
		t.Errorf("hosts %q, error %v", hosts, err)
	}
	_, err := Registries("npm", "gradle", "brew")
	if err == nil || !strings.Contains(err.Error(), "gradle") || !strings.Contains(err.Error(), "brew") {
		t.Errorf("error %v; want both tools that are not known", err)
	}
}
