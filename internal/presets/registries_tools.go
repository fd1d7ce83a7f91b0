package presets

import (
	"context"
	"encoding/json"
	"strings"
)

// goHosts reads GOPROXY and GOSUMDB as `go help goproxy` and `go help module-auth` have them.
func goSays(a *asker, ctx context.Context) ([]said, error) {
	out, err := a.run(ctx, "go", "go", "env", "-json", "GOPROXY", "GOSUMDB")
	if err != nil {
		return nil, err
	}
	var set struct{ GOPROXY, GOSUMDB string }
	if json.Unmarshal([]byte(out), &set) != nil {
		return nil, unsaid("go", "`go env -json` printed no JSON", "run it to see why", nil)
	}
	var urls []string
	for _, u := range strings.FieldsFunc(set.GOPROXY, func(c rune) bool { return c == ',' || c == '|' }) {
		if u = strings.TrimSpace(u); u != "" && u != "direct" && u != "off" {
			urls = append(urls, withScheme(u))
		}
	}
	list := []said{{"GOPROXY", urls}}
	db := strings.Fields(set.GOSUMDB) // "name", "name+hash+key", each with a URL or without
	if len(db) == 0 || db[0] == "off" {
		return list, nil
	}
	name, _, _ := strings.Cut(db[0], "+")
	at := []string{withScheme(name)}
	if len(db) > 1 {
		at = db[1:]
	}
	return append(list, said{"GOSUMDB", at}), nil
}

// withScheme gives a host's name the scheme that go adds to it.
func withScheme(u string) string {
	if strings.Contains(u, ":/") {
		return u
	}
	return "https://" + u
}

// npmHosts asks for the registry as it is outside of every project: --global leaves a project's .npmrc out. The list that npm prints has
// the registries of scopes; secrets are "(protected)" in it, and so is a URL that has one.
func npmSays(a *asker, ctx context.Context) ([]said, error) {
	out, err := a.run(ctx, "npm", "npm", "config", "get", "registry", "--global")
	if err != nil {
		return nil, err
	}
	list := []said{{"registry", []string{strings.TrimSpace(out)}}}
	if out, err = a.run(ctx, "npm", "npm", "config", "list", "--global"); err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) { // @scope:registry = "URL"; a line that begins with ";" is a comment, or overridden
		name, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		if !strings.HasPrefix(name, "@") || !strings.HasSuffix(name, ":registry") {
			continue
		}
		var u string
		if json.Unmarshal([]byte(value), &u) != nil {
			return nil, unprinted("npm", name)
		}
		list = append(list, said{name, []string{u}})
	}
	return list, nil
}

// pipHosts reads pip's settings. A variable of the environment comes before those of files.
func pipSays(a *asker, ctx context.Context) ([]said, error) {
	out, err := a.run(ctx, "pip", "pip", "config", "list")
	if err != nil && ctx.Err() == nil {
		if other, otherErr := a.run(ctx, "pip", "python3", "-m", "pip", "config", "list"); otherErr == nil {
			out, err = other, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return []said{{"index-url", pipSetting(out, "index-url")}, {"extra-index-url", pipSetting(out, "extra-index-url")}}, nil
}

// pipSetting returns the values that one setting has in the output of `pip config list`: SECTION.KEY='VALUE', as
// Python's repr writes it, where a value of several lines has "\n".
func pipSetting(out, key string) (values []string) {
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		section, found := strings.CutSuffix(name, "."+key)
		if !found || len(value) < 2 {
			continue
		}
		list := strings.Fields(strings.ReplaceAll(value[1:len(value)-1], `\n`, " "))
		if section == ":env:" {
			return list
		}
		values = append(values, list...)
	}
	return values
}

// bundlerSays reads bundler's mirrors. Those of one source have its URL in the setting's name.
func bundlerSays(a *asker, ctx context.Context) ([]said, error) {
	out, err := a.run(ctx, "bundler", "bundle", "config", "list", "--parseable")
	if err != nil {
		return nil, err
	}
	mirrors := said{setting: "mirror"}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.HasPrefix(name, "mirror.") && !strings.HasSuffix(name, ".fallback_timeout") {
			mirrors.urls = append(mirrors.urls, value)
		}
	}
	return []said{mirrors}, nil
}
