package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// A bareRoom has functions that run where there is no Go runtime, and files that
// are ordinary.
type bareRoom struct {
	room     string
	ordinary []string       // files
	besides  []string       // ordinary functions of the others
	pragmas  []string       // that each bare function has
	imports  []string       // all that a bare file may import; nil: the walls say
	may      *regexp.Regexp // what a bare function may call outside of its room
	calls    int            // at least so many are in the listing, or it is not understood
}

// The two ways out that are left to be called are never taken: that of the stack
// check, since the stack is large enough, and the write barrier's, since no garbage
// is collected.
var bareRooms = []bareRoom{
	{
		room:     "internal/stage/child",
		ordinary: []string{"hook_linux.go"},       // belongs to a runtime's start
		besides:  []string{"Entry", "stackKnown"}, // ask where the code is
		pragmas:  []string{"norace", "nocheckptr"},
		may:      regexp.MustCompile(`internal/sys\.(Raw(\.abi0)?$|Call$|Addr\[)|internal/supervisor\.|^runtime\.(morestack|gcWriteBarrier)`),
		calls:    100,
	},
	{
		room:     "internal/supervisor",
		ordinary: []string{"rules.go", "plain.go", "filter.go", "judge.go", "denied.go", "watched.go", "ask.go"},
		pragmas:  []string{"norace"},
		imports:  []string{"syscall", "unsafe", module + "/internal/sys", module + "/internal/protected", module + "/internal/supervisor/gittext"},
		may:      regexp.MustCompile(`internal/sys\.Raw(\.abi0)?$|internal/supervisor/gittext\.|^runtime\.(morestack|gcWriteBarrier)`),
		calls:    100,
	},
	{
		room:    "internal/supervisor/gittext",
		pragmas: []string{"norace"},
		imports: []string{},
		may:     regexp.MustCompile(`^runtime\.(morestack|gcWriteBarrier)`),
		calls:   20,
	},
}

// functions returns the names of the bare functions, and holds their source to the
// rules.
func (b bareRoom) functions(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, f := range files(t) {
		if f.room != b.room || f.test || slices.Contains(b.ordinary, path.Base(f.path)) {
			continue
		}
		for _, p := range f.imports() {
			if b.imports != nil && !slices.Contains(b.imports, p) {
				t.Errorf("%s imports %s", f.path, p)
			}
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || slices.Contains(b.besides, fn.Name.Name) {
				continue
			}
			names[fn.Name.Name] = true
			for _, pragma := range b.pragmas {
				has := fn.Doc != nil && slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return c.Text == "//go:"+pragma })
				if fn.Body != nil && !has {
					t.Errorf("%s: %s is not %s", f.path, fn.Name.Name, pragma)
				}
			}
		}
	}
	return names
}

// TestBareCodeCallsNoRuntime reads the machine code of both architectures: the bare
// functions call one another, system calls, and nothing of the runtime, not even
// what would panic. Nor is anything of theirs on the heap.
func TestBareCodeCallsNoRuntime(t *testing.T) {
	kerneltest.Long(t)
	architectures := []string{"amd64", "arm64"}
	if slices.Contains(architectures, runtime.GOARCH) && !kerneltest.All(t) {
		architectures = []string{runtime.GOARCH}
	}
	for _, b := range bareRooms {
		names := b.functions(t)
		for _, arch := range architectures {
			t.Run(path.Base(b.room)+" "+arch, func(t *testing.T) {
				object := filepath.Join(t.TempDir(), "object.a")
				for l := range strings.Lines(b.run(t, arch, "build", "-gcflags=-m", "-o", object, ".")) {
					file, _, _ := strings.Cut(strings.TrimPrefix(l, "./"), ":")
					if strings.Contains(l, "moved to heap") || strings.Contains(l, "escapes to heap") && !slices.Contains(b.ordinary, file) {
						t.Error(l)
					}
				}
				b.judge(t, names, b.run(t, arch, "tool", "objdump", object))
				if !kerneltest.All(t) {
					return // the two other ways to compile
				}
				// As the race detector has it, which checks pointers too (go tool compile -d=checkptr).
				b.run(t, arch, "build", "-gcflags=-d=checkptr", "-o", object, ".")
				b.judge(t, names, b.run(t, arch, "tool", "objdump", object))
				// As a debugger wants it: without optimisations, where frames are larger.
				b.run(t, arch, "test", "-c", "-gcflags=github.com/holdfast-dev/holdfast/...=-N -l", "-o", os.DevNull, ".")
			})
		}
	}
}

// run returns what the go command says in the room.
func (b bareRoom) run(t *testing.T, arch string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(b.room))
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// judge reads a listing.
func (b bareRoom) judge(t *testing.T, names map[string]bool, listing string) {
	text := regexp.MustCompile(`^TEXT (\S+)`)
	call := regexp.MustCompile(`R_CALL(?:ARM64|IND)?:(\S+)`)
	short := regexp.MustCompile(path.Base(b.room) + `\.(?:\(\*?\w+\)\.)?(\w+)`)
	bare := func(symbol string) string {
		if n := short.FindStringSubmatch(symbol); n != nil && names[n[1]] {
			return n[1]
		}
		return ""
	}
	in, seen, calls := "", map[string]bool{}, 0
	for l := range strings.Lines(listing) {
		if m := text.FindStringSubmatch(l); m != nil {
			in = bare(m[1])
			seen[in] = true
		}
		m := call.FindStringSubmatch(l)
		if in == "" || m == nil {
			continue
		}
		calls++
		if !b.may.MatchString(m[1]) && bare(m[1]) == "" {
			t.Errorf("%s calls %s", in, m[1])
		}
	}
	if delete(seen, ""); len(seen) < len(names)*2/3 || calls < b.calls {
		t.Errorf("saw %d of %d functions and %d calls: the listing is not understood", len(seen), len(names), calls)
	}
}

// TestForksOfTheStageCheckNoStack: a process that the stage makes is one thread, and cannot yield where the
// stage's runtime has asked the goroutine to (child/stop_linux.go, cloneHelper). So the first that it calls has no stack
// check, or makes all of them pass. The keeper begins in assembly (spawn), which does that.
func TestForksOfTheStageCheckNoStack(t *testing.T) {
	nosplit := map[string]bool{"enterInit": true, "passStackChecks": true} // in assembly
	var forks []*ast.CallExpr
	for _, f := range files(t) {
		if f.room != "internal/stage/child" || f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if fn.Doc != nil && slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return c.Text == "//go:nosplit" }) {
				nosplit[fn.Name.Name] = true
			}
			if slices.Contains([]string{"cloneInit", "cloneHelper", "joinAndClone"}, fn.Name.Name) {
				forks = append(forks, firstOfForks(fn)...)
			}
		}
	}
	if len(forks) != 3 {
		t.Errorf("found %d forks of the stage, want 3", len(forks))
	}
	for _, c := range forks {
		if name := c.Fun.(*ast.Ident).Name; !nosplit[name] {
			t.Errorf("a fork of the stage calls %s first, which checks the stack", name)
		}
	}
}

// firstOfForks returns the first call of each block for a pid of 0.
func firstOfForks(fn *ast.FuncDecl) (calls []*ast.CallExpr) {
	ast.Inspect(fn, func(n ast.Node) bool {
		branch, ok := n.(*ast.IfStmt)
		if !ok {
			return true
		}
		cond, ok := branch.Cond.(*ast.BinaryExpr)
		for ok && cond.Op == token.LAND {
			cond, ok = cond.X.(*ast.BinaryExpr)
		}
		if !ok {
			return true
		}
		if zero, ok := cond.Y.(*ast.BasicLit); !ok || zero.Value != "0" || cond.Op != token.EQL {
			return true
		}
		var pid string
		switch x := cond.X.(type) {
		case *ast.Ident:
			pid = x.Name
		case *ast.SelectorExpr:
			pid = x.Sel.Name
		}
		if stmt, ok := branch.Body.List[0].(*ast.ExprStmt); ok && strings.HasSuffix(strings.ToLower(pid), "pid") {
			calls = append(calls, stmt.X.(*ast.CallExpr))
		}
		return true
	})
	return calls
}
