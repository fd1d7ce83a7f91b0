package emit

import (
	"slices"
	"strings"
)

// aliased are the directories of macOS's root that are links into /private.
var aliased = []string{"/tmp", "/var", "/etc"}

// spellings returns a path as the kernel has it, and as it is written otherwise.
func spellings(p string) []string {
	for _, dir := range aliased {
		if within(p, dir) {
			return []string{"/private" + p, p}
		}
		if within(p, "/private"+dir) {
			return []string{p, strings.TrimPrefix(p, "/private")}
		}
	}
	return []string{p}
}

func within(p, dir string) bool {
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || dir == "/" || p[len(dir)] == '/')
}

// inTreeOrder sorts rules so that each directory comes before what lies in it, by
// the spelling that the kernel has. Of several about one place the one that allows
// least stays.
func inTreeOrder(rules []Rule) []Rule {
	out := slices.Clone(rules)
	for i := range out {
		out[i].Path = spellings(out[i].Path)[0]
	}
	slices.SortStableFunc(out, func(a, b Rule) int {
		if a.Path != b.Path {
			return strings.Compare(strings.ReplaceAll(a.Path, "/", "\x00"), strings.ReplaceAll(b.Path, "/", "\x00"))
		}
		return strictness[a.Kind] - strictness[b.Kind]
	})
	return slices.CompactFunc(out, func(a, b Rule) bool { return a.Path == b.Path })
}

var strictness = [...]int{Hide: 1, Socket: 2, Read: 3, Device: 4, Write: 5}
