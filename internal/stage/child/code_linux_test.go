package child

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bareFunctions returns the functions that run where there is no Go runtime: all
// but those of the hook, which belongs to a runtime's start, and the two that tell
// the harness where the image's code is.
func bareFunctions(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_linux.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range files {
		if f == "hook_linux.go" {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name == "Image" || fn.Name.Name == "stackKnown" {
				continue
			}
			names[fn.Name.Name] = true
			doc := ""
			if fn.Doc != nil {
				for _, c := range fn.Doc.List {
					doc += c.Text + "\n"
				}
			}
			if fn.Body != nil && (!strings.Contains(doc, "//go:norace\n") || !strings.Contains(doc, "//go:nocheckptr\n")) {
				t.Errorf("%s: %s is not norace and nocheckptr", f, fn.Name.Name)
			}
		}
	}
	return names
}

// TestTheStagesCodeCallsNoRuntime reads the machine code of both architectures:
// these functions call one another, the guard's and sys.Raw, and nothing of the
// runtime, not even what would panic, but for two ways out that are never taken:
// the stack check's, and the write barrier's, since no garbage is collected. Nor
// is anything of theirs on the heap.
func TestTheStagesCodeCallsNoRuntime(t *testing.T) {
	names := bareFunctions(t)
	text := regexp.MustCompile(`^TEXT (\S+)`)
	call := regexp.MustCompile(`R_CALL(?:ARM64|IND)?:(\S+)`)
	short := regexp.MustCompile(`stage/child\.(\w+)`)
	fine := regexp.MustCompile(`internal/sys\.(Raw(\.abi0)?|Call)$|stage/guard\.|^runtime\.(morestack|gcWriteBarrier)`)
	for _, arch := range []string{"amd64", "arm64"} {
		object := filepath.Join(t.TempDir(), arch+".a")
		build := exec.Command("go", "build", "-gcflags=-m", "-o", object, ".")
		build.Env = append(os.Environ(), "GOARCH="+arch)
		notes, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, notes)
		}
		for l := range strings.SplitSeq(string(notes), "\n") {
			if strings.Contains(l, "escapes to heap") || strings.Contains(l, "moved to heap") {
				t.Errorf("%s: %s", arch, l)
			}
		}
		dump := exec.Command("go", "tool", "objdump", object)
		dump.Env = append(os.Environ(), "GOARCH="+arch)
		code, err := dump.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, code)
		}
		in, seen, calls := "", map[string]bool{}, 0
		for l := range strings.SplitSeq(string(code), "\n") {
			if m := text.FindStringSubmatch(l); m != nil {
				in = ""
				if n := short.FindStringSubmatch(m[1]); n != nil && names[n[1]] {
					in = n[1]
					seen[in] = true
				}
			}
			m := call.FindStringSubmatch(l)
			if in == "" || m == nil {
				continue
			}
			calls++
			if n := short.FindStringSubmatch(m[1]); !fine.MatchString(m[1]) && (n == nil || !names[n[1]]) {
				t.Errorf("%s: %s calls %s", arch, in, m[1])
			}
		}
		if len(seen) < len(names)*2/3 || calls < 100 {
			t.Errorf("%s: saw %d of %d functions and %d calls: the listing is not understood", arch, len(seen), len(names), calls)
		}
	}
}
