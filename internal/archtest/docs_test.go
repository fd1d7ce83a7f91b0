package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest is a test as a page names it: whole, or with "..." or, in a pattern of -run, "|" or "'" behind it for all
// whose names begin so.
var namedTest = regexp.MustCompile(`\b((?:Test|Fuzz|Benchmark)[A-Z]\w*)(\.\.\.|[|'])?`)

// inProse are words of the pages that look like a test's name: an example's own.
var inProse = map[string]bool{"TestSubmission": true}

// TestPagesNameTestsThatExist holds each test that a page gives as a proof to the code, the table of findings above all.
func TestPagesNameTestsThatExist(t *testing.T) {
	var names []string
	for _, f := range files(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "SECURITY.md"))
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedTest.FindAllStringSubmatch(string(text), -1) {
			if inProse[m[1]] {
				continue
			}
			found++
			if !exists(names, m[1], m[2] != "") {
				t.Errorf("%s names %s, which no test file has", filepath.Base(page), m[0])
			}
		}
	}
	if found < 100 {
		t.Errorf("the pages name %d tests only: the pattern finds them no more", found)
	}
}

func exists(names []string, name string, begins bool) bool {
	for _, n := range names {
		if n == name || begins && strings.HasPrefix(n, name) {
			return true
		}
	}
	return false
}
