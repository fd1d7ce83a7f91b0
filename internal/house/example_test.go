package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// shown are the rooms that a user imports. Every exported symbol of theirs
// stands in an example.
var shown = []string{"sandbox", "sandbox/sandboxtest", "sandbox/sbpl", "landlock", "landlock/process", "seccomp", "rlimit"}

// TestEveryExportStandsInAnExample looks for each exported function, type,
// constant, variable, method and field in the Example functions of the room's
// external test package, which say what a user would write.
func TestEveryExportStandsInAnExample(t *testing.T) {
	for _, room := range shown {
		exported, seen := symbols(files(t), room)
		if len(exported) == 0 {
			t.Errorf("%s exports nothing", room)
		}
		for _, name := range missing(exported, seen) {
			t.Errorf("%s: no example shows %s", room, name)
		}
	}
}

// symbols returns what a room exports, as "Name" or "Type.Name", and what its
// examples mention, as "Name" or, where the type is not known, ".Name".
func symbols(list []*file, room string) (exported []string, seen map[string]bool) {
	seen = map[string]bool{}
	for _, f := range list {
		switch {
		case f.room != room || f.ignored:
		case !f.test:
			exported = append(exported, exports(f)...)
		case strings.HasSuffix(f.syntax.Name.Name, "_test"):
			mentions(f, path.Base(room), seen)
		}
	}
	slices.Sort(exported)
	return slices.Compact(exported), seen
}

func missing(exported []string, seen map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(exported), func(name string) bool {
		_, member, isMember := strings.Cut(name, ".")
		return seen[name] || isMember && seen["."+member]
	})
}

// exports lists the exported symbols of a file. Methods whose contract is
// another package's, such as Error, are not the room's to explain.
func exports(f *file) []string {
	var list []string
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			switch {
			case d.Recv == nil:
				list = append(list, name)
			case ast.IsExported(receiver(d)) && !slices.Contains(ownWords, name):
				list = append(list, receiver(d)+"."+name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				list = append(list, specified(s)...)
			}
		}
	}
	return slices.DeleteFunc(list, func(name string) bool {
		owner, member, isMember := strings.Cut(name, ".")
		return !ast.IsExported(owner) || isMember && !ast.IsExported(member)
	})
}

// specified lists what one declaration names, with the fields of a struct.
func specified(s ast.Spec) []string {
	var list []string
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, id := range s.Names {
			list = append(list, id.Name)
		}
	case *ast.TypeSpec:
		list = append(list, s.Name.Name)
		if fields, isStruct := s.Type.(*ast.StructType); isStruct {
			for _, field := range fields.Fields.List {
				for _, id := range field.Names {
					list = append(list, s.Name.Name+"."+id.Name)
				}
			}
		}
	}
	return list
}

// mentions notes what the examples of a file, and its variables, use: pkg.Name,
// x.Name, the keys of literals; and what the example's own name says: ExampleT_M
// is of T and its M.
func mentions(f *file, pkg string, seen map[string]bool) {
	for _, d := range f.syntax.Decls {
		if fn, isFunc := d.(*ast.FuncDecl); isFunc {
			example, ok := strings.CutPrefix(fn.Name.Name, "Example")
			if !ok {
				continue
			}
			of, member, _ := strings.Cut(example, "_")
			seen[of], seen[of+"."+member] = true, true
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == pkg {
					seen[n.Sel.Name] = true
				} else {
					seen["."+n.Sel.Name] = true
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok {
					seen["."+key.Name] = true
				}
			}
			return true
		})
	}
}

// TestASymbolThatNoExampleShowsIsFound keeps the test above from passing
// because it looks at nothing.
func TestASymbolThatNoExampleShowsIsFound(t *testing.T) {
	source := `package rooms
		const Loud, quiet = 1, 2
		type T struct { Field, Unseen int; own int }
		func (T) Do() {}; func (T) Undone() {}; func (T) String() string { return "" }
		func F() {}; func G() {}`
	examples := `package rooms_test
		import "rooms"
		func ExampleF() { t := rooms.T{Field: 1}; t.Do() }
		func helper() { rooms.G() }`
	list := []*file{parsed(t, "rooms", source, false), parsed(t, "rooms", examples, true)}
	exported, seen := symbols(list, "rooms")
	if got, want := fmt.Sprint(missing(exported, seen)), "[G Loud T.Undone T.Unseen]"; got != want {
		t.Errorf("missing %s, want %s", got, want)
	}
}

func parsed(t *testing.T, room, text string, test bool) *file {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &file{room: room, test: test, text: text, syntax: syntax}
}
