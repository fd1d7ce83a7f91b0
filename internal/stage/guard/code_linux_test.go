package guard

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

// servingFunctions returns the functions that run in the forked child: all but those of the ordinary files.
func servingFunctions(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_linux.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range append(files, "match.go", "gitconfig.go") {
		tree, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range tree.Imports {
			if p := imp.Path.Value; p != `"syscall"` && p != `"unsafe"` && !strings.HasSuffix(p, `/internal/sys"`) {
				t.Errorf("%s imports %s", f, imp.Path.Value)
			}
		}
		for _, d := range tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			names[fn.Name.Name] = true
			doc := ""
			if fn.Doc != nil {
				for _, c := range fn.Doc.List {
					doc += c.Text + "\n"
				}
			}
			if !strings.Contains(doc, "//go:norace\n") {
				t.Errorf("%s: %s is not norace", f, fn.Name.Name)
			}
		}
	}
	return names
}

// TestServingCodeCallsNoRuntime reads the machine code of both architectures: the serving functions call one another
// and sys.Raw, and nothing of the runtime, not even what would panic, but for the stack check and the write barrier of Begin, whose ways out are never taken: there is no collector.
func TestServingCodeCallsNoRuntime(t *testing.T) {
	names := servingFunctions(t)
	text := regexp.MustCompile(`^TEXT (\S+)`)
	call := regexp.MustCompile(`R_CALL(?:ARM64|IND)?:(\S+)`)
	short := regexp.MustCompile(`guard\.(?:\(\*?\w+\)\.)?(\w+)`)
	for _, arch := range []string{"amd64", "arm64"} {
		object := filepath.Join(t.TempDir(), arch+".a")
		build := exec.Command("go", "build", "-gcflags=-m", "-o", object, ".")
		build.Env = append(os.Environ(), "GOARCH="+arch)
		notes, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, notes)
		}
		for l := range strings.SplitSeq(string(notes), "\n") {
			serving := !strings.HasPrefix(l, "./rules.go") && !strings.HasPrefix(l, "./plain.go") && !strings.HasPrefix(l, "./filter.go") && !strings.HasPrefix(l, "./names.go")
			if serving && strings.Contains(l, "escapes to heap") || strings.Contains(l, "moved to heap") {
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
			n := short.FindStringSubmatch(m[1])
			if !strings.HasSuffix(strings.TrimSuffix(m[1], ".abi0"), "internal/sys.Raw") && !strings.HasPrefix(m[1], "runtime.morestack") && !strings.HasPrefix(m[1], "runtime.gcWriteBarrier") && (n == nil || !names[n[1]]) {
				t.Errorf("%s: %s calls %s", arch, in, m[1])
			}
		}
		if len(seen) < len(names)*3/4 || calls < 100 {
			t.Errorf("%s: saw %d of %d functions and %d calls: the listing is not understood", arch, len(seen), len(names), calls)
		}
		// As a debugger wants it: without optimisations, where frames are larger.
		link := exec.Command("go", "test", "-c", "-gcflags=all=-N -l", "-o", os.DevNull, ".")
		link.Env = append(os.Environ(), "GOARCH="+arch)
		if out, err := link.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", arch, err, out)
		}
	}
}
