package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

var (
	kernelInCI    = regexp.MustCompile(`ahead "kernel ([0-9]+\.[0-9]+)`)
	kernelInTable = regexp.MustCompile(`Linux ([0-9]+\.[0-9]+)`)
	kernelInProse = regexp.MustCompile(`\b[0-9]+\.[0-9]+\b`)
)

// TestPagesNameTheKernelsThatAreTested: those of .ci/run, and of the table of docs/hosts.md. README leaves out 5.10, on which New refuses.
func TestPagesNameTheKernelsThatAreTested(t *testing.T) {
	read := func(name, from, to string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		_, rest, begins := strings.Cut(string(text), from)
		part, _, ends := strings.Cut(rest, to)
		if err != nil || !begins || !ends {
			t.Fatalf("%s has no %q before %q: %v", name, from, to, err)
		}
		return part
	}
	tested := kernelInCI.FindAllStringSubmatch(read(".ci/run", "#!", "\necho \"$SECONDS s\""), -1)
	tested = append(tested, kernelInTable.FindAllStringSubmatch(read("docs/hosts.md", "<!-- table of internal/hosttest -->\n", "<!-- end of the table -->"), -1)...)
	hosts := kernelInProse.FindAllString(read("docs/hosts.md", "Tested kernels: ", "refuses files and processes"), -1)
	readme := kernelInProse.FindAllString(read("README.md", "tested on ", ";"), -1)
	all := map[string]bool{"24.04": true} // Ubuntu's
	for _, m := range tested {
		k := m[1]
		if all[k] = true; !slices.Contains(hosts, k) {
			t.Errorf("docs/hosts.md does not name %s among the kernels that are tested", k)
		}
		if k != "5.10" && !slices.Contains(readme, k) {
			t.Errorf("README does not name %s among the kernels that are tested", k)
		}
	}
	for _, k := range slices.Concat(hosts, readme) {
		if !all[k] {
			t.Errorf("%s is named among the kernels that are tested, and neither .ci/run nor the table has it", k)
		}
	}
	if len(all) < 6 {
		t.Errorf("%v: the patterns find no kernels any more", all)
	}
}
