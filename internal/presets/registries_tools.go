package presets

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
)

// goHosts reads GOPROXY and GOSUMDB as `go help goproxy` and `go help module-auth` have them.
func (a *asker) goHosts(ctx context.Context) ([]string, error) {
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
	if len(urls) == 0 {
		return nil, unsaid("go", "the setting GOPROXY names no proxy", "`go env -w GOPROXY=URL`, or name the hosts of the modules' repositories yourself", nil)
	}
	hosts, err := registryHosts("go", "GOPROXY", urls...)
	if err != nil {
		return nil, err
	}
	db := strings.Fields(set.GOSUMDB) // "name", "name+hash+key", each with a URL or without
	if len(db) == 0 || db[0] == "off" {
		return hosts, nil
	}
	name, _, _ := strings.Cut(db[0], "+")
	at := []string{withScheme(name)}
	if len(db) > 1 {
		at = db[1:]
	}
	sums, err := registryHosts("go", "GOSUMDB", at...)
	return append(hosts, sums...), err
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
func (a *asker) npmHosts(ctx context.Context) ([]string, error) {
	out, err := a.run(ctx, "npm", "npm", "config", "get", "registry", "--global")
	if err != nil {
		return nil, err
	}
	hosts, err := registryHosts("npm", "registry", strings.TrimSpace(out))
	if err != nil {
		return nil, err
	}
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
			return nil, unsaid("npm", "the setting "+errtext.Printable(name)+" is not printed: its URL has a password", "move the password to //HOST/:_authToken or :_password", nil)
		}
		scoped, err := registryHosts("npm", errtext.Printable(name), u)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, scoped...)
	}
	return hosts, nil
}

// pipHosts reads pip's settings. A variable of the environment comes before those of files.
func (a *asker) pipHosts(ctx context.Context) ([]string, error) {
	out, err := a.run(ctx, "pip", "pip", "config", "list")
	if err != nil && ctx.Err() == nil {
		if other, otherErr := a.run(ctx, "pip", "python3", "-m", "pip", "config", "list"); otherErr == nil {
			out, err = other, nil
		}
	}
	if err != nil {
		return nil, err
	}
	index := pipSetting(out, "index-url")
	if len(index) == 0 {
		return nil, unsaid("pip", "the setting index-url is not set, and pip does not print what it uses then", "`pip config set global.index-url URL`, or the variable PIP_INDEX_URL", nil)
	}
	hosts, err := registryHosts("pip", "index-url", index...)
	if err != nil {
		return nil, err
	}
	extra, err := registryHosts("pip", "extra-index-url", pipSetting(out, "extra-index-url")...)
	return append(hosts, extra...), err
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

// aptHosts reads sources.list and sources.list.d, as sources.list(5) has them.
func (a *asker) aptHosts(context.Context) ([]string, error) {
	if _, err := a.find("apt-get"); err != nil {
		return nil, unsaid("apt", "apt-get is not on PATH outside of the workspace", "install it, or leave the tool out", err)
	}
	dir := filepath.Join(a.root, "etc/apt")
	files := []string{filepath.Join(dir, "sources.list")}
	entries, err := os.ReadDir(filepath.Join(dir, "sources.list.d"))
	if err != nil && !os.IsNotExist(err) {
		return nil, unsaid("apt", "sources.list.d cannot be read", "", err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".list" || ext == ".sources" {
			files = append(files, filepath.Join(dir, "sources.list.d", e.Name()))
		}
	}
	var urls []string
	for _, f := range files {
		text, err := a.read("apt", f)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(f, ".sources") {
			urls = append(urls, deb822URIs(text)...)
		} else {
			urls = append(urls, listURIs(text)...)
		}
	}
	if len(urls) == 0 {
		return nil, unsaid("apt", "sources.list and sources.list.d name no source", "write a deb line into /etc/apt/sources.list", nil)
	}
	return registryHosts("apt", "sources.list", urls...)
}

// listURIs returns the URIs of lines such as "deb [arch=amd64 trusted=no] URI suite component".
func listURIs(text string) (uris []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "deb" && words[0] != "deb-src" {
			continue
		}
		words = words[1:]
		if strings.HasPrefix(words[0], "[") {
			end := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, "]") })
			words = words[end+1:]
		}
		if len(words) > 0 && !strings.HasPrefix(words[0], "cdrom:") { // whose label may have spaces
			uris = append(uris, words[0])
		}
	}
	return uris
}

// deb822URIs returns the URIs of stanzas that are not switched off.
func deb822URIs(text string) (uris []string) {
	var here []string
	field, off := "", false
	end := func() {
		if !off {
			uris = append(uris, here...)
		}
		here, field, off = nil, "", false
	}
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case strings.TrimSpace(line) == "":
			end()
			continue
		}
		value := line
		if line[0] != ' ' && line[0] != '\t' {
			name, rest, _ := strings.Cut(line, ":")
			field, value = strings.ToLower(strings.TrimSpace(name)), rest
		}
		switch field {
		case "uris":
			here = append(here, strings.Fields(value)...)
		case "enabled":
			off = slices.Contains([]string{"no", "false", "without", "off", "disable"}, strings.ToLower(strings.TrimSpace(value)))
		}
	}
	end()
	return uris
}
