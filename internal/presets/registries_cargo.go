package presets

import (
	"context"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// cargoHosts reads the user's configuration of cargo: what replaces crates-io, and the indexes of other registries. Without
// a replacement cargo does not say which host it uses.
func (a *asker) cargoHosts(context.Context) ([]string, error) {
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
		if problem := cargoSettings(text, set); problem != "" {
			return nil, unsaid("cargo", p+" "+problem, `write [source.NAME] and [registries.NAME] as tables with a string on each line`, nil)
		}
		if text != "" {
			break
		}
	}
	urls, err := cargoURLs(set)
	if err != nil {
		return nil, err
	}
	for _, v := range a.env {
		name, value, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "CARGO_REGISTRIES_") && strings.HasSuffix(name, "_INDEX") {
			urls = append(urls, value)
		}
	}
	for i, u := range urls {
		urls[i] = strings.TrimPrefix(u, "sparse+")
	}
	return registryHosts("cargo", "source or registries", urls...)
}

// cargoURLs follows the replacement of crates-io and adds the indexes of other registries, in the order of their names.
func cargoURLs(set map[string]string) (urls []string, err error) {
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
	default:
		return nil, unsaid("cargo", "the setting source.crates-io.replace-with does not lead to a registry, and cargo does not print what it uses then",
			"set it, and registry of the source that it names, in config.toml of CARGO_HOME", nil)
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if strings.HasPrefix(key, "registries.") && strings.HasSuffix(key, ".index") {
			urls = append(urls, set[key])
		}
	}
	return urls, nil
}

// cargoSettings reads the strings of the tables source and registries. It is no reader of TOML: what could
// be a setting of these in another form is a problem, and so is text that could hide the end of a value.
func cargoSettings(text string, set map[string]string) (problem string) {
	table, depth := "", 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, `"""`) || strings.Contains(line, "'''") {
			return "has a string of several lines"
		}
		bare, ok := uncomment(line)
		switch {
		case !ok:
			return "has a string without its end"
		case depth > 0: // within an array
			depth += brackets(bare)
			continue
		case bare == "":
			continue
		case strings.HasPrefix(bare, "["):
			if table, ok = cargoKey(strings.TrimSuffix(strings.TrimPrefix(bare, "["), "]")); !ok {
				table = "-" // of no interest, unless it is one of these in another form
				if strings.Contains(bare, "source") || strings.Contains(bare, "registries") || strings.Contains(bare, `\\`) {
					return "has a table's name that is not understood"
				}
			}
			continue
		}
		left, value, _ := strings.Cut(bare, "=")
		key, plain := cargoKey(strings.TrimSpace(left))
		value = strings.TrimSpace(value)
		depth = brackets(value)
		if table != "" {
			key = table + "." + key
		}
		if key == "include" {
			return "includes other files"
		}
		first, _, _ := strings.Cut(key, ".")
		if first != "source" && first != "registries" {
			if table == "" && !plain {
				return "has a key that is not understood"
			}
			continue
		}
		s, isString := cargoString(value)
		switch {
		case !plain || strings.HasPrefix(value, "{"):
			return "has a setting of source or registries that is not understood"
		case isString:
			set[key] = s
		case strings.HasSuffix(key, ".registry") || strings.HasSuffix(key, ".index") || strings.HasSuffix(key, ".replace-with"):
			return "has a string that is not understood"
		}
	}
	if depth != 0 {
		return "has an array without its end"
	}
	return ""
}

// cargoKey returns a dotted key without spaces and quotes, and whether it is understood.
func cargoKey(s string) (string, bool) {
	parts := strings.Split(s, ".")
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if q, ok := cargoString(p); ok {
			p = q
		}
		if p == "" || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return "", false
		}
		parts[i] = p
	}
	return strings.Join(parts, "."), true
}

// cargoString returns the text of a string of one line.
func cargoString(s string) (string, bool) {
	if len(s) >= 2 && s[0] == '\'' && strings.IndexByte(s[1:], '\'') == len(s)-2 {
		return s[1 : len(s)-1], true
	}
	if len(s) < 2 || s[0] != '"' {
		return "", false
	}
	text, err := strconv.Unquote(s)
	return text, err == nil
}

// outside calls f with each byte of a line that is in no string, and its place; f stops it with false. It returns whether the last string has its end.
func outside(line string, f func(i int, c byte) bool) bool {
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case !f(i, c):
			return true
		}
	}
	return quote == 0
}

// uncomment cuts a comment off; it is false for a string without its end.
func uncomment(line string) (string, bool) {
	end := len(line)
	ok := outside(line, func(i int, c byte) bool {
		if c == '#' {
			end = i
		}
		return c != '#'
	})
	return strings.TrimSpace(line[:end]), ok
}

// brackets counts those that are open at the end of a line.
func brackets(line string) (open int) {
	outside(line, func(_ int, c byte) bool {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open--
		}
		return true
	})
	return open
}
