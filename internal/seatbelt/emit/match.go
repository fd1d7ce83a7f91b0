package emit

import "regexp"

// matches reports whether one component is what a part of a name asks for. It is
// asked of the components of a root, which are known.
func matches(part, name string) bool {
	re, err := regexp.Compile("^(" + partRegex(part) + ")$")
	return err != nil || re.MatchString(name) // what cannot be told is protected
}
