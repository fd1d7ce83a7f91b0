package presets

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// aptSays reads sources.list and sources.list.d, as sources.list(5) has them.
func aptSays(a *asker, _ context.Context) ([]said, error) {
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
	return []said{{"sources.list", urls}}, nil
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
