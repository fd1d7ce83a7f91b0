package errtext

// Repeated shortens lines: what one ends with in parentheses, as a reason with its remedy, is said by the first of those in a row that have it. After
// another's it is said again, so that "(as above)" can mean one reason alone.
type Repeated struct{ last string }

// Shorten returns the line, with "(as above)" in the place of the end that the last one with an end had.
func (r *Repeated) Shorten(line string) string {
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
		if open < 0 || line[at] != '(' {
			return line
		}
		last, end := r.last, line[at:]
		if r.last = end; end != last || len(end) <= len("(as above)") {
			return line
		}
		return line[:at] + "(as above)"
	}
	return line
}
