package seccomp

//go:generate go run gen_table.go

// entry is one syscall: its name and its number on either architecture, or -1.
// The table is a sorted array of constants, so that importing this package costs no work at start-up.
type entry struct {
	name         string
	amd64, arm64 int16
}

// number returns the entry's number on a, and whether a has the syscall.
func (e entry) number(a Arch) (uint32, bool) {
	n := e.arm64
	if a == AMD64 {
		n = e.amd64
	}
	return uint32(n), n >= 0
}

// find returns the place in the table of a syscall name, or -1.
func find(name string) int {
	lo, hi := 0, len(table)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if table[mid].name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(table) && table[lo].name == name {
		return lo
	}
	return -1
}

// nameOf finds the name of a syscall number on a; it searches the whole table, which only printing does.
func nameOf(a Arch, nr uint32) (string, bool) {
	for _, e := range table {
		if n, ok := e.number(a); ok && n == nr {
			return e.name, true
		}
	}
	return "", false
}

// closest returns the syscall name that is nearest to a misspelt one, or "" if none is near.
func closest(name string) string {
	if len(name) > 64 {
		return ""
	}
	best, bestDistance := "", max(2, len(name)/3)+1
	for _, e := range table {
		if d := distance(name, e.name); d < bestDistance {
			best, bestDistance = e.name, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two strings, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
