package emit

import "strings"

// partRegex is a regular expression for one component of a name, or for "**".
func partRegex(part string) string {
	switch prefix, open := strings.CutSuffix(part, "*"); {
	case part == "*":
		return "[^/]+"
	case part == "**":
		return ".+"
	case part[0] == '*':
		return "[^/]*" + foldedRegex(part[1:])
	case open:
		return foldedRegex(prefix) + "[^/]*"
	default:
		return foldedRegex(part)
	}
}

// below returns regular expressions for a name at every depth below root. The name
// may begin among root's own components, but has to end below it: a name is cut
// where a part of it is the end of root.
func below(root string, parts []string, tail string) []string {
	base := "^" + plainRegex(strings.TrimSuffix(root, "/")) + "/"
	out := []string{base + "(.*/)?" + joined(parts) + tail}
	have := strings.Split(strings.Trim(root, "/"), "/")
	for cut := 1; cut < len(parts) && cut <= len(have); cut++ {
		if endsIn(have, parts[:cut]) {
			out = append(out, base+joined(parts[cut:])+tail)
		}
	}
	if i := indexDeep(parts); i >= 0 {
		return append(out, belowDeep(base, have, parts[:i], parts[i+1:], tail)...)
	}
	return out
}

// belowDeep is for a name whose "**" begins among the root's components: it has
// taken one of them at least, and may take more, or the rest of the name begins
// there, too.
func belowDeep(base string, have, before, after []string, tail string) []string {
	for end := len(before); end < len(have); end++ {
		if !endsIn(have[:end], before) {
			continue
		}
		out := []string{base + "(.*/)?" + joined(after) + tail}
		if len(after) == 0 { // the way to a name: whatever lies there
			out[0] = base + ".+" + tail
		}
		for cut := 1; cut < len(after) && end+cut < len(have); cut++ {
			if endsIn(have, after[:cut]) {
				out = append(out, base+joined(after[cut:])+tail)
			}
		}
		return out
	}
	return nil
}

func joined(parts []string) string {
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = partRegex(p)
	}
	return strings.Join(list, "/")
}

func indexDeep(parts []string) int {
	for i, p := range parts {
		if p == "**" {
			return i
		}
	}
	return -1
}

// endsIn reports whether the last components of have are what parts, without
// "**", ask for.
func endsIn(have, parts []string) bool {
	if len(parts) > len(have) || indexDeep(parts) >= 0 {
		return false
	}
	have = have[len(have)-len(parts):]
	for i, p := range parts {
		if !matches(p, have[i]) {
			return false
		}
	}
	return true
}

// Tails of regular expressions.
const (
	exact   = "$"
	beneath = "(/.*)?$"
)

// leading returns the parts that are the way to a name: .git and .git/modules of
// .git/modules/**/hooks. deep is the last of them if "**" follows, below which every
// place may be one.
func leading(parts []string) (ways [][]string, deep []string) {
	for i := 1; i < len(parts); i++ {
		if parts[i] == "**" {
			return append(ways, parts[:i]), parts[:i+1]
		}
		ways = append(ways, parts[:i])
	}
	return ways, nil
}
