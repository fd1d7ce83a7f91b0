package pathrule

import "strings"

// Within reports whether p is dir or lies below it. Both are clean.
func Within(p, dir string) bool {
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || dir == "/" || p[len(dir)] == '/')
}

// WithinAny reports whether p is one of dirs or lies below one.
func WithinAny(p string, dirs []string) bool {
	for _, dir := range dirs {
		if Within(p, dir) {
			return true
		}
	}
	return false
}

// Join appends a name to a directory, both clean.
func Join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// TreeOrder compares paths so that each directory is followed by all that lies
// below it: as strings in which the slash comes before every other byte.
func TreeOrder(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		case x < y:
			return -1
		default:
			return 1
		}
	}
	return strings.Compare(a[n:], b[n:])
}
