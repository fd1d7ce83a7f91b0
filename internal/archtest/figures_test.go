package archtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// Figures of the module, each with what it may be at most: a little more than it is, so that a mistake can be
// mended without moving anything. A limit goes down with its figure, and
// the aim is what it is to come to.
type figure struct {
	name       string
	is         int
	limit, aim int
}

// mostFiles is how many files of one package may each be reached from each other, but for those named here.
const mostFiles = 12

var longCycles = map[string]int{
	"sandbox":              6,
	"internal/runner":      7,
	"internal/stage/child": 13,
}

// TestFigures measures the module: go test -run TestFigures -v ./internal/archtest prints the table.
func TestFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it type-checks the module")
	}
	figures := append(sizes(t), cycles(t)...)
	if testing.Verbose() || kerneltest.All(t) { // it builds the module anew
		figures = append(figures, preparedRun(t)...)
	}
	for _, f := range figures {
		note := ""
		if f.is > f.aim {
			note = fmt.Sprintf(", to be %d", f.aim)
		}
		t.Logf("%6d  %s%s", f.is, f.name, note)
		if f.is > f.limit {
			t.Errorf("%s: %d is above %d", f.name, f.is, f.limit)
		}
	}
}

// sizes counts lines without tests.
func sizes(t *testing.T) []figure {
	proxy := 0
	for _, f := range files(t) {
		if !f.test && (f.room == "internal/proxy" || strings.HasPrefix(f.room, "internal/proxy/")) {
			proxy += strings.Count(f.text, "\n")
		}
	}
	return []figure{{"lines of internal/proxy with its packages", proxy, 8_600, 6_000}}
}

// cycles looks for the longest cycle of files in each package.
func cycles(t *testing.T) []figure {
	var figures []figure
	packages, exported := list(t)
	for _, p := range packages {
		graph, err := arrows(p, exported)
		if err != nil {
			t.Errorf("%s: %v", p.room, err)
			continue
		}
		most := mostFiles
		if n := longCycles[p.room]; n > 0 {
			most = n
		}
		if n := len(longestCycle(graph)); n >= 6 {
			figures = append(figures, figure{"files in the longest cycle of " + p.room, n, most, most})
		}
	}
	slices.SortFunc(figures, func(a, b figure) int { return cmp.Or(b.is-a.is, strings.Compare(a.name, b.name)) })
	return figures
}
