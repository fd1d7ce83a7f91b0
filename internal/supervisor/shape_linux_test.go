package supervisor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The target can change at any moment what a name below its /proc directory leads to: a descriptor's number, its
// working directory, its memory. So each object of the target's is taken once, as an O_PATH descriptor, and everything
// after goes through that. These tests hold the source to it.

// takers are the functions that use State.task, the target's /proc directory, each with what it does there. Each
// does so in one place.
var takers = map[string]string{
	"startDir":     "takes the working directory, as O_PATH",
	"toolFD":       "takes a descriptor, as O_PATH",
	"mem":          "opens the memory, once a call",
	"status":       "reads text that the kernel writes about the task, and no object of its",
	"mounts":       "reads a link's text, and follows it nowhere",
	"openTerminal": "has terminal read the stat file: text that the kernel writes",
	"readTask":     "reads what a process says of itself, for the record: nothing is decided by it",
	"enter":        "opens, keeps and closes the directory itself",
	"Begin":        "sets it to none",
}

// pathTakers are those that open an object of the target's.
var pathTakers = []string{"startDir", "toolFD"}

// takings are the places where an object is taken, by caller and callee, with why it is taken once there.
var takings = map[string]string{
	"find startDir":        "where the path begins; the resolved path keeps it, and bind goes by that",
	"find toolFD":          "the object that the call is about; the resolved path keeps it",
	"startDir toolFD":      "the directory descriptor of find's",
	"openTerminal toolFD":  "each number once; reopenIf looks at it and opens it by the descriptor",
	"bind duplicateFD":     "the socket: the kernel has no other way to it",
	"ownSocketAt toolFD":   "the socket, whose inode says which of the supervisor's own it is",
	"isBind readMem":       "the address: each call copies it once, and only the copy is used",
	"isConnect readMem":    "the address: each call copies it once, and only the copy is used",
	"isTimes readMem":      "the times, which are copied once",
	"attribute readMem":    "the attribute's value, which is copied once",
	"isAttribute readPath": "the attribute's name, which is copied once",
	"readPath readMem":     "the next piece of a path, each byte once",
	"read readPath":        "the path of argument k",
	"decode readPath":      "the text of a symbolic link, which is no path argument",
}

// A shape is what a package's source does with the target's objects.
type shape struct {
	task    map[string]int // uses of State.task by function
	takings map[string]int // calls of a function that takes an object, by caller and callee
	flags   map[string]bool
}

// shapeOf reads the files of the serving path.
func shapeOf(t *testing.T, dir fs.FS) shape {
	t.Helper()
	names, err := fs.Glob(dir, "*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no source: %v", err)
	}
	s := shape{map[string]int{}, map[string]int{}, map[string]bool{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				s.add(fn)
			}
		}
	}
	return s
}

func (s shape) add(fn *ast.FuncDecl) {
	name := fn.Name.Name
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if n.Sel.Name == "task" {
				s.task[name]++
			}
		case *ast.CallExpr:
			callee := calleeOf(n)
			if slices.Contains([]string{"startDir", "toolFD", "duplicateFD", "readMem", "readPath"}, callee) {
				s.takings[name+" "+callee]++
			}
			if callee == "openat" && uses(n.Args[0], "task") {
				s.flags[name] = uses(n.Args[2], "oPath")
			}
		}
		return true
	})
}

func calleeOf(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// uses reports whether a name occurs in an expression.
func uses(e ast.Expr, name string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// secondLooks says what in the source looks at an object of the target's more than once, or not as O_PATH.
func (s shape) secondLooks() (problems []string) {
	for _, fn := range slices.Sorted(maps.Keys(s.task)) {
		switch n := s.task[fn]; {
		case takers[fn] == "":
			problems = append(problems, fn+" looks below the target's /proc directory")
		case n > 1 && fn != "enter":
			problems = append(problems, fn+" looks below the target's /proc directory twice")
		}
	}
	for _, fn := range slices.Sorted(maps.Keys(s.takings)) {
		switch n := s.takings[fn]; {
		case takings[fn] == "":
			problems = append(problems, fn+": takes an object of the target's in a new place")
		case n > 1 && fn != "decode readPath": // one for each form of the call
			problems = append(problems, fn+": takes an object of the target's in two places")
		}
	}
	for _, fn := range slices.Sorted(maps.Keys(s.flags)) {
		if slices.Contains(pathTakers, fn) != s.flags[fn] {
			problems = append(problems, fn+": O_PATH is what takes an object, and nothing else does")
		}
	}
	return problems
}

func TestNoSecondLookAtTheTarget(t *testing.T) {
	s := shapeOf(t, os.DirFS("."))
	for _, p := range s.secondLooks() {
		t.Error(p)
	}
	for fn := range takers {
		if s.task[fn] == 0 {
			t.Errorf("%s is in the list, and looks at nothing of the target's", fn)
		}
	}
	for place := range takings {
		if s.takings[place] == 0 {
			t.Errorf("%s is in the list, and is not in the source", place)
		}
	}
}

// TestSecondLooksAreFound shows the test's own eyes two mistakes that were made: a descriptor of the target's that was
// looked at by one lookup and opened by another, and a working directory that was taken anew after the check.
func TestSecondLooksAreFound(t *testing.T) {
	for want, text := range map[string]string{
		"openTerminal looks below the target's /proc directory twice": `func (s *State) openTerminal(flags int) int {
	dev := s.terminal()
	for n := uint(0); n < 3; n++ {
		s.number("fd/", n)
		if sys(sysFstatat, uintptr(s.task), uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&s.st)), 0, 0) == 0 && s.st.Rdev == dev {
			if fd := openat(s.task, &s.num[0], flags&^(syscall.O_CREAT|syscall.O_NOFOLLOW)|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0); fd >= 0 {
				return s.give(s.req.id, fd, flags)
			}
		}
	}
	return 0
}`,
		"bindPath startDir: takes an object of the target's in a new place": `func (s *State) bindPath() int {
	cwd := s.startDir(atFDCWD)
	return sys(syscall.SYS_FCHDIR, uintptr(cwd), 0, 0, 0, 0)
}`,
		"toolFD: O_PATH is what takes an object, and nothing else does": `func (s *State) toolFD(fd int) int {
	s.number("fd/", uint(fd))
	return openat(s.task, &s.num[0], syscall.O_RDONLY, 0)
}`,
		"bind duplicateFD: takes an object of the target's in two places": `func (s *State) bind() int {
	return s.look(s.duplicateFD(s.flags)) + s.name(s.duplicateFD(s.flags))
}`,
	} {
		s := shapeOf(t, fstest.MapFS{"x_linux.go": {Data: []byte("package supervisor\n" + text)}})
		if got := s.secondLooks(); !slices.Contains(got, want) {
			t.Errorf("not found: %s\ninstead: %q", want, got)
		}
	}
}
