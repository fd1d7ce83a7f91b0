package verdict

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// samePart compares one component of a path with one of a name, as file systems do that fold case, leave out dots and
// blanks at the end, have streams behind a colon, or short names beside the long ones.
func samePart(part, name string) bool {
	if part == "*" {
		return true
	}
	if i := strings.LastIndexByte(name, ':'); i > 0 {
		name = name[:strings.IndexByte(name[1:], ':')+1]
	}
	for len(name) > 1 && (name[len(name)-1] == '.' || name[len(name)-1] == ' ') {
		name = name[:len(name)-1]
	}
	word, begins := strings.CutSuffix(part, "*")
	word, ends := strings.CutPrefix(word, "*")
	have, want := pathrule.FoldName(name), pathrule.FoldName(word)
	return begins && strings.HasPrefix(have, want) || ends && strings.HasSuffix(have, want) || have == want || shortFor(word, begins, ends, name)
}

// shortFor reports whether name may be the short name, as vfat and NTFS have them beside the long ones, of what is called word, or begins or
// ends with it: some letters, "~", a number, and the first three letters of the extension.
func shortFor(word string, begins, ends bool, name string) bool {
	stem, rest, _ := strings.Cut(name, "~")
	extension := strings.TrimLeft(rest, "0123456789")
	size := len(name) - len(extension)
	if stem == "" || rest == extension || size > 8 || extension != "" && extension[0] != '.' || len(extension) > 4 {
		return false
	}
	if !ends {
		word = strings.TrimLeft(word, ".")
	}
	base, itsExtension := word, ""
	if i := strings.LastIndexByte(word, '.'); i >= 0 {
		base, itsExtension = word[:i], word[i:min(len(word), i+4)]
	}
	if !begins && !strings.EqualFold(extension, itsExtension) {
		return false
	}
	base = strings.ReplaceAll(base, ".", "")
	agrees := func(stem string, cut bool) bool {
		n := min(len(stem), len(base))
		return strings.EqualFold(stem[:n], base[:n]) && (begins && len(stem) > n || len(stem) == n && (cut || len(base) == n))
	}
	if ends || agrees(stem, size == 8) {
		return true
	}
	letters := len(stem) - 4
	return letters > 0 && letters < 3 && strings.Trim(strings.ToLower(stem[letters:]), "0123456789abcdef") == "" && agrees(stem[:letters], true)
}
