package errtext

// Repeated shortens lines: what one ends with in parentheses, as a reason with its remedy, is said by the first that has it.
type Repeated map[string]bool

// Shorten returns the line, with "(as above)" in the place of an end that another line has had.
func (r Repeated) Shorten(line string) string {
	open := 0
	for at := len(line) - 1; at > 0; at-- {
		switch line[at] {
		case ')':
			open++
		case '(':
			open--
		}
		if open > 0 {
			continue
		}
		if end := line[at:]; open < 0 || end[0] != '(' || len(end) <= len("(as above)") {
			return line
		} else if !r[end] {
			r[end] = true
			return line
		}
		return line[:at] + "(as above)"
	}
	return line
}
