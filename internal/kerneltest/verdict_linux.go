package kerneltest

import (
	"fmt"
	"strings"
)

// outcome is the end of a child.
type outcome int

const (
	ok outcome = iota
	skip
	bad
)

// verdict judges a child by its records and by what waiting for it returned.
// Only a child that ran the body to its end and exited with 0 is ok.
func verdict(record string, exit error) (outcome, string) {
	rest, ran := strings.CutPrefix(record, began)
	switch {
	case !ran && exit != nil:
		return bad, fmt.Sprintf("the child did not run the body: %v", exit)
	case !ran:
		return bad, "the child exited with status 0 and did not run the body"
	case exit != nil:
		return bad, fmt.Sprintf("the child failed: %v", exit)
	case rest == passed:
		return ok, ""
	case rest == skipped:
		return skip, "the child skipped"
	case rest == failed:
		return bad, "the child failed and yet exited with status 0"
	}
	return bad, "the child exited with status 0 before the end of the body"
}

// relay is the part of a child's output that concerns the body: without the
// headings of package testing, and without the skip by which a child ends
// the test after the body.
func relay(output, test string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		name, found := strings.CutPrefix(strings.TrimSpace(line), "--- SKIP: ")
		name, _, _ = strings.Cut(name, " ")
		switch {
		case strings.HasPrefix(line, "=== "), line == "PASS", line == "":
		case found && (test == name || strings.HasPrefix(test, name+"/")):
		case strings.HasPrefix(strings.TrimSpace(line), "--- PASS: "):
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// lastLine is the last line of a text, without its indentation.
func lastLine(text string) string {
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
