package presets

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// uvSays reads uv's variables and its files of the user and the machine. Those of a project are left out.
func uvSays(a *asker, _ context.Context) ([]said, error) {
	if _, err := a.find("uv"); err != nil {
		return nil, unsaid("uv", "uv is not on PATH outside of the workspace", "install it, or leave the tool out", err)
	}
	base := a.variable("XDG_CONFIG_HOME")
	if base == "" {
		base = pathrule.Join(a.variable("HOME"), ".config")
	}
	files := []string{path.Join(base, "uv/uv.toml"), path.Join(a.root, "etc/uv/uv.toml")}
	if file := a.variable("UV_CONFIG_FILE"); file != "" {
		files = []string{file}
	}
	standard, extra := said{setting: "UV_DEFAULT_INDEX"}, said{setting: "UV_INDEX"}
	for _, name := range []string{"UV_DEFAULT_INDEX", "UV_INDEX_URL"} {
		standard.urls = append(standard.urls, uvURLs(a.variable(name))...)
	}
	for _, name := range []string{"UV_INDEX", "UV_EXTRA_INDEX_URL"} {
		extra.urls = append(extra.urls, uvURLs(a.variable(name))...)
	}
	for _, file := range files {
		text, err := a.read("uv", file)
		if err != nil {
			return nil, err
		}
		set := map[string]string{}
		if problem := tomlSettings(text, []string{"index", "index-url", "extra-index-url", "pip"}, set); problem != "" {
			return nil, unsaid("uv", file+" "+problem, "write [[index]] as tables with a string or true on each line", nil)
		}
		var here []string // the default's
		for _, key := range slices.Sorted(maps.Keys(set)) {
			number, isIndex := strings.CutSuffix(key, ".url")
			switch {
			case key == "index-url", isIndex && set[number+".default"] == "true":
				here = append(here, set[key])
			case isIndex, strings.HasSuffix(key, "index-url"):
				extra.urls = append(extra.urls, set[key])
			}
		}
		if len(standard.urls) == 0 {
			standard = said{"index", here}
		}
	}
	return []said{standard, extra}, nil
}

// uvURLs returns the URLs of a variable, which may each have a name.
func uvURLs(value string) (urls []string) {
	for _, u := range strings.Fields(value) {
		if name, at, found := strings.Cut(u, "="); found && !strings.Contains(name, ":") {
			u = at
		}
		urls = append(urls, u)
	}
	return urls
}
