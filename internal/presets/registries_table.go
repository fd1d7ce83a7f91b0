package presets

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
)

// A registryTool is a tool that Registries knows.
type registryTool struct {
	// ask returns what the tool says, first the setting that it has to say. nil: no setting outside of a project has it.
	ask             func(*asker, context.Context) ([]said, error)
	missing, remedy string // of the error if that setting has no URL
}

// said is a setting of a tool, with its URLs.
type said struct {
	setting string
	urls    []string
}

var registryTools = map[string]registryTool{
	"apt": {aptSays, "sources.list and sources.list.d name no source", "write a deb line into /etc/apt/sources.list"},
	"bundler": {bundlerSays, "no setting mirror.SOURCE is set: the sources stand in a Gemfile, which is a program",
		"`bundle config set --global mirror.all URL`; if Gemfiles have RubyGems' sources, name gem"},
	"cargo": {cargoSays, "the setting source.crates-io.replace-with does not lead to a registry, and cargo does not print what it uses then",
		"set it, and registry of the source that it names, in config.toml of CARGO_HOME"},
	"gem": {printed("gem", "sources", "gem", "environment", "remotesources"), "the setting sources is empty", "`gem sources --add URL`"},
	"go":  {goSays, "the setting GOPROXY names no proxy", "`go env -w GOPROXY=URL`, or name the hosts of the modules' repositories yourself"},
	"gradle": {nil, "no setting names its registries: repositories stand in build and init scripts, which are programs",
		"name the hosts of their repositories in Network.Hosts"},
	"maven": {mavenSays, "no mirror in settings.xml is of central, nor has a profile that is active a repository and a pluginRepository central; Maven does not print what it uses then",
		"write a mirror with <mirrorOf>central</mirrorOf> into ~/.m2/settings.xml"},
	"npm":  {npmSays, "the setting registry is not set", "`npm config set registry URL`"},
	"pip":  {pipSays, "the setting index-url is not set, and pip does not print what it uses then", "`pip config set global.index-url URL`, or the variable PIP_INDEX_URL"},
	"pnpm": {pnpmSays, "the setting registry is not set", "`pnpm config set registry URL`"},
	"poetry": {nil, "no setting names its registries: tool.poetry.source stands in a project's pyproject.toml, which tools can write",
		"name the hosts of its sources in Network.Hosts"},
	"uv": {uvSays, "no [[index]] of uv.toml has default = true, and uv does not print what it uses then",
		"write one into ~/.config/uv/uv.toml, or set the variable UV_DEFAULT_INDEX"},
	"yarn": {yarnSays, "the setting registry (npmRegistryServer from version 2 on) is not set", "`yarn config set` it"},
}

// ask returns the hosts of one tool.
func (a *asker) ask(ctx context.Context, name string) (hosts []string, err error) {
	tool, ok := registryTools[name]
	if !ok {
		return nil, unsaid(name, "is no tool that can be asked", "name one of "+strings.Join(slices.Sorted(maps.Keys(registryTools)), ", "), nil)
	}
	var list []said
	if tool.ask != nil {
		if list, err = tool.ask(a, ctx); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 || len(list[0].urls) == 0 {
		return nil, unsaid(name, tool.missing, tool.remedy, nil)
	}
	for _, s := range list {
		more, err := registryHosts(name, errtext.Printable(s.setting), s.urls...)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, more...)
	}
	return hosts, nil
}

// printed asks a command that prints a URL on each line.
func printed(tool, setting, name string, args ...string) func(*asker, context.Context) ([]said, error) {
	return func(a *asker, ctx context.Context) ([]said, error) {
		out, err := a.run(ctx, tool, name, args...)
		return []said{{setting, strings.Fields(out)}}, err
	}
}

// unprinted is the error for a setting that a tool prints without its value.
func unprinted(tool, setting string) error {
	return unsaid(tool, "the setting "+errtext.Printable(setting)+" is not printed: its URL has a password", "move the password to //HOST/:_authToken or :_password", nil)
}

// scopes returns the registries of scopes among the settings of npm and its like.
func scopes(tool string, set map[string]any) (list []said, err error) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !strings.HasPrefix(name, "@") || !strings.HasSuffix(name, ":registry") {
			continue
		}
		u, ok := set[name].(string)
		if !ok || u == "(protected)" {
			return nil, unprinted(tool, name)
		}
		list = append(list, said{name, []string{u}})
	}
	return list, nil
}
