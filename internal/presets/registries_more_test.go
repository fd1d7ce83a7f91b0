package presets

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// yarnScript is a yarn of a version that answers to its arguments.
func yarnScript(version, cases string) map[string]string {
	return map[string]string{"yarn": `[ "$YARN_IGNORE_PATH$COREPACK_ENABLE_NETWORK" = 10 ] || exit 9; case "$*" in --version) echo ` + version + `;; ` + cases + ` *) exit 8;; esac`}
}

func mavenScript() map[string]string {
	return map[string]string{"mvn": `[ "$*" = "--batch-mode --version" ] && printf 'Apache Maven 3\nMaven home: %s\n' "${0%/bin/mvn}/maven"`}
}

// mavenUser is a user's settings.xml, as a file of fakeTools.
func mavenUser(text string) map[string]string {
	return map[string]string{"home/.m2/settings.xml": `<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">` + text + `</settings>`,
		"maven/conf/settings.xml": `<settings><mirrors><mirror><id>b</id><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror></mirrors></settings>`}
}

// TestRegistriesOfOtherPackageManagers has what those print and the files that they read, and what none of their settings says.
func TestRegistriesOfOtherPackageManagers(t *testing.T) {
	repository := func(kind, id, url string) string {
		return "<" + kind + "><id>" + id + "</id><url>" + url + "</url></" + kind + ">"
	}
	profile := func(rest string) string {
		return "<profiles><profile><id>corp</id>" + rest + "<repositories>" + repository("repository", "central", "https://central.example/") + repository("repository", "own", "https://own.example/") +
			"</repositories><pluginRepositories>" + repository("pluginRepository", "central", "https://central.example/") + "</pluginRepositories></profile></profiles>"
	}
	mirror := func(of string) string {
		return "<mirrors><mirror><id>m</id><mirrorOf>" + of + "</mirrorOf><url>https://u:secret@mirror.example/x</url></mirror></mirrors>"
	}
	uv := map[string]string{"uv": "exit 1"}
	uvFile := func(text string) map[string]string { return map[string]string{"home/.config/uv/uv.toml": text} }
	bundle := func(list string) map[string]string {
		return map[string]string{"bundle": `[ "$*" = "config list --parseable" ] && cat <<'E'` + "\n" + list + "E\n"}
	}
	classic := `"config list --json") cat <<'E'
{"type":"info","data":"yarn config"}
{"type":"inspect","data":{"registry":"https://yarn.example","strict-ssl":true,"@beta:registry":"https://beta.example/"}}
{"type":"info","data":"npm config"}
{"type":"inspect","data":{"registry":"https://u:secret@npm.example/x/","//scope.example/:_authToken":"secret"}}
E
;;`
	for _, c := range []struct {
		what           string
		tool           string
		scripts, files map[string]string
		env            string // NAME=value
		want           string // the hosts, or what is in the error
		fails          bool
	}{
		{"yarn 1: npm's registry comes before yarn's", "yarn", yarnScript("1.22.22", classic), nil, "", "npm.example:443 beta.example:443", false},
		{"yarn 4 and its scopes", "yarn", yarnScript("4.1.0", `"config get npmRegistryServer") echo https://berry.example;; "config get npmScopes --json") echo '{"b":{"npmRegistryServer":null},"a":{"npmRegistryServer":"http://scope.example","npmAuthToken":"secret"}}';;`),
			nil, "", "berry.example:443 scope.example:80", false},
		{"yarn 4 without scopes", "yarn", yarnScript("4.1.0", `"config get npmRegistryServer") echo https://berry.example;; "config get npmScopes --json") echo undefined;;`), nil, "", "berry.example:443", false},
		{"yarn by Debian's name", "yarn", map[string]string{"yarnpkg": yarnScript("1.22", classic)["yarn"]}, nil, "", "npm.example:443 beta.example:443", false},
		{"yarn that corepack would fetch", "yarn", map[string]string{"yarn": "echo secret >&2; exit 1"}, nil, "", "`yarn --version` failed", true},
		{"pnpm and its scopes", "pnpm", map[string]string{"pnpm": `[ "$*" = "config list --json" ] && echo '{"registry":"https://pnpm.example/","@a:registry":"https://u:secret@a.example","registries":{"x":{}}}'`}, nil, "", "pnpm.example:443 a.example:443", false},
		{"pnpm's registry with a password that it does not print", "pnpm", map[string]string{"pnpm": `echo '{"registry":"https://pnpm.example/","@a:registry":"(protected)"}'`}, nil, "", "@a:registry", true},
		{"pnpm without a registry", "pnpm", map[string]string{"pnpm": `echo '{}'`}, nil, "", "registry", true},
		{"gem's sources", "gem", map[string]string{"gem": `[ "$*" = "environment remotesources" ] && printf 'https://u:secret@gems.example/\nhttp://other.example:8808\n'`}, nil, "", "gems.example:443 other.example:8808", false},
		{"gem without sources", "gem", map[string]string{"gem": "echo"}, nil, "", "sources", true},
		{"bundler's mirrors", "bundler", bundle("gemfile=/x\nmirror.https://rubygems.org/=https://u:secret@gems.example/\nmirror.https://rubygems.org/.fallback_timeout=true\nmirror.all=http://all.example\n"), nil, "", "gems.example:443 all.example:80", false},
		{"bundler without mirrors", "bundler", bundle("path=vendor\n"), nil, "", "mirror.all", true},
		{"uv's default and another index", "uv", uv, uvFile("offline = false\n[[index]]\nname = \"b\"\nurl = \"https://b.example/simple\"\n\n[[index]] # mine\nurl = \"https://u:secret@a.example/simple\"\ndefault = true\n"), "", "a.example:443 b.example:443", false},
		{"uv's index-url", "uv", uv, uvFile("index-url = \"https://a.example/simple\"\n[pip]\nextra-index-url = \"https://b.example\"\n"), "", "a.example:443 b.example:443", false},
		{"uv's variable comes first", "uv", uv, uvFile("index-url = \"https://secret.example/simple\"\n"), "UV_DEFAULT_INDEX=mine=https://env.example/simple?a=b", "env.example:443", false},
		{"uv's file of the machine", "uv", uv, map[string]string{"etc/uv/uv.toml": "index-url = \"https://machine.example\"\n"}, "", "machine.example:443", false},
		{"uv's settings in another form", "uv", uv, uvFile("index = [{ url = \"https://secret.example\", default = true }]\n"), "", "not understood", true},
		{"uv's list of indexes", "uv", uv, uvFile("extra-index-url = [\"https://secret.example\"]\nindex-url = \"https://a.example\"\n"), "", "not understood", true},
		{"uv with an index that is no default", "uv", uv, uvFile("[[index]]\nurl = \"https://b.example/simple\"\n"), "", "UV_DEFAULT_INDEX", true},
		{"Maven's mirror of everything", "maven", mavenScript(), mavenUser(mirror("*") + profile("<activation><activeByDefault>true</activeByDefault></activation>")), "", "mirror.example:443", false},
		{"Maven's mirror of central alone, and a repository", "maven", mavenScript(), mavenUser(mirror("central") + profile("") + "<activeProfiles><activeProfile>corp</activeProfile></activeProfiles>"), "", "mirror.example:443 own.example:443", false},
		{"Maven's mirror of all but central", "maven", mavenScript(), mavenUser(mirror("*,!central")), "", "central", true},
		{"Maven's central replaced by a profile", "maven", mavenScript(), mavenUser(profile("") + "<activeProfiles><activeProfile>corp</activeProfile></activeProfiles>"), "", "central.example:443 own.example:443", false},
		{"a profile of Maven's that is not active", "maven", mavenScript(), mavenUser(profile("")), "", "central", true},
		{"a placeholder in Maven's URL", "maven", mavenScript(), mavenUser(`<mirrors><mirror><mirrorOf>*</mirrorOf><url>https://${env.SECRET}/</url></mirror></mirrors>`), "", "no URL", true},
		{"Maven without settings", "maven", mavenScript(), nil, "", "settings.xml", true},
		{"Maven's file that is no XML", "maven", mavenScript(), map[string]string{"home/.m2/settings.xml": "<settings>secret"}, "", "no XML", true},
		{"poetry, whose sources a project has", "poetry", nil, nil, "", "tool.poetry.source", true},
		{"gradle, whose repositories programs have", "gradle", nil, nil, "", "Network.Hosts", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, name := range []string{"XDG_CONFIG_HOME", "UV_CONFIG_FILE", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"} {
				t.Setenv(name, "")
			}
			if name, value, set := strings.Cut(c.env, "="); set {
				t.Setenv(name, value)
			}
			a, _ := fakeTools(t, c.scripts, c.files)
			hosts, err := a.hosts(t.Context(), []string{c.tool})
			if got := strings.Join(hosts, " "); !c.fails && (err != nil || got != c.want) {
				t.Errorf("hosts %q, error %v; want %q", got, err, c.want)
			}
			var typed *policy.PolicyError
			if c.fails && (hosts != nil || !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) || typed.Value != c.tool || typed.Remedy == "") {
				t.Errorf("hosts %q, error %v; want a PolicyError with %q and a remedy", hosts, err, c.want)
			}
			if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), "env.SECRET", ""), "secret") {
				t.Errorf("the error has what a setting says: %v", err)
			}
		})
	}
}

// Every tool of the table that can be asked is looked for before its files are read: what is not installed has no registry.
func TestRegistriesOfToolsThatAreNotThere(t *testing.T) {
	_, root := fakeTools(t, nil, nil)
	t.Setenv("PATH", root+"/bin")
	a := newAsker(root+"/home/project", root, nil)
	for name, tool := range registryTools {
		if _, err := a.hosts(t.Context(), []string{name}); tool.ask != nil && !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
