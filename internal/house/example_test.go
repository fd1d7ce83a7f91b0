package house

import (
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shown are the rooms whose every exported function stands in an example. With
// true every type does too; the other rooms have types that are only the values
// of fields, and errors.
var shown = map[string]bool{"sandbox": true, "seccomp": false, "landlock": false, "landlock/process": false, "rlimit": false}

// TestEveryExportStandsInAnExample counts any name in the body of an Example
// function of the room, or in a program below examples.
func TestEveryExportStandsInAnExample(t *testing.T) {
	for room, types := range shown {
		if missing := unshown(files(t), room, types); len(missing) > 0 {
			t.Errorf("%s: in no example: %s", room, strings.Join(missing, " "))
		}
	}
}

func unshown(list []*file, room string, types bool) []string {
	exported, seen := map[string]bool{}, map[string]bool{}
	for _, f := range list {
		switch {
		case f.room == room && !f.test && !f.ignored:
			exports(f, types, exported)
		case f.room == room && f.test, roomOf(f.room) == "examples":
			names(f, seen)
		}
	}
	for name := range seen {
		delete(exported, name)
	}
	return slices.Sorted(maps.Keys(exported))
}

// exports notes the exported functions of a file, and its types; no methods.
func exports(f *file, types bool, into map[string]bool) {
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				into[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok && types && s.Name.IsExported() {
					into[s.Name.Name] = true
				}
			}
		}
	}
}

// names notes the identifiers in the file's examples; in a program all of them.
// ExampleT_M shows T.
func names(f *file, into map[string]bool) {
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		of, isExample := strings.CutPrefix(fn.Name.Name, "Example")
		if f.test && !isExample {
			continue
		}
		of, _, _ = strings.Cut(of, "_")
		into[of] = true
		ast.Inspect(fn, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				into[id.Name] = true
			}
			return true
		})
	}
}

// TestGuardOfExamplesBites keeps the test above from passing for want of rooms.
func TestGuardOfExamplesBites(t *testing.T) {
	for room := range shown {
		if list, err := filepath.Glob(filepath.Join(root, room, "*.go")); err != nil || len(list) == 0 {
			t.Errorf("%s is empty: %v", room, err)
		}
	}
}
