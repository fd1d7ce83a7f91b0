package archtest

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the module's directory, as seen from this one.
const root = "../.."

// module is the import path of the module.
const module = "github.com/holdfast-dev/holdfast"

// A file is one Go source file of the module.
type file struct {
	path    string // from the module's root, with slashes
	room    string // its directory; "." is the module's root
	test    bool
	ignored bool // for no build: a generator
	text    string
	syntax  *ast.File
}

// imports returns the paths that the file imports.
func (f *file) imports() []string {
	var list []string
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			list = append(list, p)
		}
	}
	return list
}

// files parses the module's source once. Directories that are modules of their
// own, hold test data or begin with a dot are not the module's.
func files(t *testing.T) []*file {
	t.Helper()
	list, err := parseOnce()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var parseOnce = sync.OnceValues(func() ([]*file, error) {
	var list []*file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root:
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
				return fs.SkipDir
			}
			return nil
		case filepath.Ext(p) != ".go":
			return nil
		}
		f, err := parse(p)
		list = append(list, f)
		return err
	})
	return list, err
})

func parse(p string) (*file, error) {
	text, err := os.ReadFile(p)
	if err != nil {
		return nil, err
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), p, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, p)
	if err != nil {
		return nil, err
	}
	rel = filepath.ToSlash(rel)
	f := &file{path: rel, room: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(rel, "_test.go"), text: string(text), syntax: syntax}
	for line := range strings.Lines(f.text) {
		if x, err := constraint.Parse(strings.TrimSpace(line)); err == nil && constraint.IsGoBuild(line) {
			f.ignored = x.Eval(func(tag string) bool { return tag == "ignore" }) && !x.Eval(func(string) bool { return false })
		}
	}
	return f, nil
}

// drawn reads the rooms from the tree in the module's doc.go.
func drawn(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, tree, found := strings.Cut(string(text), "\n// # Rooms\n")
	if !found {
		t.Fatal("doc.go has no heading Rooms")
	}
	var rooms []string
	for line := range strings.Lines(tree) {
		rest, isCode := strings.CutPrefix(line, "//\t")
		if !isCode && len(rooms) > 0 {
			break
		}
		words := strings.Fields(rest)
		if len(words) < 3 || !strings.HasSuffix(words[0], "/") {
			if isCode {
				t.Errorf("doc.go draws no room and its purpose: %q", line)
			}
			continue
		}
		rooms = append(rooms, strings.TrimSuffix(words[0], "/"))
	}
	return rooms
}

// roomOf is the drawn room that a directory belongs to: programs below
// examples are one room.
func roomOf(dir string) string {
	if strings.HasPrefix(dir, "examples/") {
		return "examples"
	}
	return dir
}

func TestTreeInDocIsTheRealOne(t *testing.T) {
	var real []string
	for _, f := range files(t) {
		if r := roomOf(f.room); r != "." && !slices.Contains(real, r) {
			real = append(real, r)
		}
	}
	for _, r := range drawn(t) {
		i := slices.Index(real, r)
		if i < 0 {
			t.Errorf("doc.go draws the room %s, which has no Go file", r)
			continue
		}
		real = slices.Delete(real, i, i+1)
	}
	for _, r := range real {
		t.Errorf("the room %s is not drawn in doc.go", r)
	}
}

func TestTopLevelFoldersAreTheseAndNoOthers(t *testing.T) {
	want := []string{"sandbox", "landlock", "seccomp", "rlimit", "examples", "internal", "docs", ".ci", ".git", ".github"}
	list, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.IsDir() && !slices.Contains(want, e.Name()) {
			t.Errorf("%s is a folder at the top that the floor plan does not have", e.Name())
		}
	}
}

func TestEachRoomSaysWhatItIs(t *testing.T) {
	said := map[string]bool{}
	for _, f := range files(t) {
		said[f.room] = said[f.room] || f.syntax.Doc != nil && !f.test
	}
	for room, ok := range said {
		if !ok {
			t.Errorf("%s has no package comment", room)
		}
	}
}
