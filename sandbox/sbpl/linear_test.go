package sbpl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestLargeProfilesTakeLinearWork counts what is asked of the profile and of the
// host. A tenth of the rules has to need about a tenth of it.
func TestLargeProfilesTakeLinearWork(t *testing.T) {
	kerneltest.Long(t)
	shapes := map[string]func(i int) string{
		"paths side by side":       func(i int) string { return fmt.Sprintf("(allow file-read* (subpath \"/a/d%d\"))\n", i) },
		"writing denied in one":    func(i int) string { return fmt.Sprintf("(deny file-write* (literal \"/w/f%d\"))\n", i) },
		"paths that do not exist":  func(i int) string { return fmt.Sprintf("(deny file-write* (subpath \"/w/none%d\"))\n", i) },
		"expressions of a name":    func(i int) string { return fmt.Sprintf("(deny file-write* (regex #\"/name%d$\"))\n", i) },
		"expressions with a place": func(i int) string { return fmt.Sprintf("(deny file-read* (regex #\"^/w/f%d[0-9]$\"))\n", i) },
		"one chain of directories": func(i int) string {
			return fmt.Sprintf("(allow file-read* (subpath \"/deep%s\"))\n", strings.Repeat("/d", i%60))
		},
	}
	for name, rule := range shapes {
		t.Run(name, func(t *testing.T) {
			n := 50_000
			switch {
			case name == "expressions of a name":
				n = 400 // each is held against every name
			case name == "expressions with a place":
				n = 2_000 // each is compiled to be looked up
			case raced || name != "paths side by side":
				n = 5_000
			default:
				n = kerneltest.Amount(t, 5_000, 20_000, n)
			}
			const times = 10
			q1, l1 := work(t, n/times, rule)
			q2, l2 := work(t, n, rule)
			t.Logf("%d rules: %d questions, %d looks at the host; %d rules: %d, %d", n/times, q1, l1, n, q2, l2)
			if q2 > times*q1+1000 || l2 > times*l1+1000 {
				t.Errorf("%d and %d, then %d and %d", q1, l1, q2, l2)
			}
			if q2 > 100*n {
				t.Errorf("%d questions for %d rules", q2, n)
			}
		})
	}
}

func work(t *testing.T, n int, rule func(i int) string) (questions, looks int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("(version 1)(deny default)(allow file-read* file-write* (subpath \"/w\"))\n")
	paths := []string{"/w/"}
	for i := range n {
		b.WriteString(rule(i))
		paths = append(paths, fmt.Sprintf("/a/d%d/", i), fmt.Sprintf("/w/f%d", i))
	}
	paths = append(paths, "/deep"+strings.Repeat("/d", 60)+"/")
	p, err := Parse("large", b.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := newFakeHost(paths...)
	c, err := p.compiler(h)
	if err != nil {
		t.Fatal(err)
	}
	c.compile()
	return c.questions, c.looks + h.asked
}
