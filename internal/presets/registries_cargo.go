package presets

import (
	"context"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// cargoSays reads the user's configuration of cargo: what replaces crates-io, and the indexes of other registries. Without
// a replacement cargo does not say which host it uses.
func cargoSays(a *asker, _ context.Context) ([]said, error) {
	if _, err := a.find("cargo"); err != nil {
		return nil, unsaid("cargo", "cargo is not on PATH outside of the workspace", "install it, or leave the tool out", err)
	}
	home := os.Getenv("CARGO_HOME")
	if home == "" {
		home = pathrule.Join(os.Getenv("HOME"), ".cargo")
	}
	set := map[string]string{}
	for _, name := range []string{"config", "config.toml"} { // cargo takes the first that is there
		p := path.Join(home, name)
		text, err := a.read("cargo", p)
		if err != nil {
			return nil, err
		}
		if problem := tomlSettings(text, []string{"source", "registries"}, set); problem != "" {
			return nil, unsaid("cargo", p+" "+problem, `write [source.NAME] and [registries.NAME] as tables with a string on each line`, nil)
		}
		if text != "" {
			break
		}
	}
	urls := cargoURLs(set)
	for _, v := range a.env {
		name, value, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "CARGO_REGISTRIES_") && strings.HasSuffix(name, "_INDEX") {
			urls = append(urls, value)
		}
	}
	for i, u := range urls {
		urls[i] = strings.TrimPrefix(u, "sparse+")
	}
	return []said{{"source or registries", urls}}, nil
}

// cargoURLs follows the replacement of crates-io and adds the indexes of other registries, in the order of their names. There is
// none if the replacement leads to no registry.
func cargoURLs(set map[string]string) (urls []string) {
	name, seen := "crates-io", []string{}
	for set["source."+name+".replace-with"] != "" && !slices.Contains(seen, name) {
		seen = append(seen, name)
		name = set["source."+name+".replace-with"]
	}
	switch at := set["source."+name+".registry"]; {
	case name != "crates-io" && at != "":
		urls = append(urls, at)
	case name != "crates-io" && set["registries."+name+".index"] != "": // among those below
	case name != "crates-io" && (set["source."+name+".directory"] != "" || set["source."+name+".local-registry"] != ""):
		urls = append(urls, "file:///")
	default:
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if strings.HasPrefix(key, "registries.") && strings.HasSuffix(key, ".index") {
			urls = append(urls, set[key])
		}
	}
	return urls
}
