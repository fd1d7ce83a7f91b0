package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// listed is a package of the module as go list shows it for this system.
type listed struct {
	room  string
	files []string // names in its directory
}

// list returns the module's packages, and for each import path the file of export data that go
// list has the compiler make.
func list(t *testing.T) (packages []listed, exported map[string]string) {
	t.Helper()
	c := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{join .GoFiles \",\"}}", "./...")
	c.Dir, c.Stderr = root, os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	exported = map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exported[f[0]] = f[1]
		if room, ours := strings.CutPrefix(f[0]+"/", module+"/"); ours && f[2] != "" {
			packages = append(packages, listed{strings.TrimSuffix(room, "/"), strings.Split(f[2], ",")})
		}
	}
	return packages, exported
}

// compiled imports packages from the files that list has named.
func compiled(fset *token.FileSet, exported map[string]string) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exported[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exported[path])
	})
}

// arrows returns, for each file of a package as this system builds it, the files of the same
// package that declare what it uses: functions, methods, fields, types, constants, variables.
func arrows(p listed, exported map[string]string) (map[string]map[string]bool, error) {
	fset := token.NewFileSet()
	graph, syntax := map[string]map[string]bool{}, []*ast.File{}
	for _, name := range p.files {
		f, err := parser.ParseFile(fset, filepath.Join(root, p.room, name), nil, 0)
		if err != nil {
			return nil, err
		}
		graph[name], syntax = map[string]bool{}, append(syntax, f)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: compiled(fset, exported)}).Check(p.room, fset, syntax, &info)
	if err != nil {
		return nil, err
	}
	base := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	for id, o := range info.Uses {
		if o.Pkg() != pkg {
			continue
		}
		if v, ok := o.(*types.Var); ok && !v.IsField() && o.Parent() != pkg.Scope() {
			continue // of one function
		}
		if from, to := base(id.Pos()), base(o.Pos()); from != to {
			graph[from][to] = true
		}
	}
	return graph, nil
}

// longestCycle returns the largest set of files of which each is reached from each (Tarjan, 1972).
func longestCycle(graph map[string]map[string]bool) []string {
	index, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack, longest []string
	var visit func(v string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v], onStack[v] = index[v], true
		stack = append(stack, v)
		for w := range graph[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if onStack[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		for i := len(stack) - 1; ; i-- {
			onStack[stack[i]] = false
			if stack[i] == v {
				if len(stack)-i > max(len(longest), 1) {
					longest = append([]string(nil), stack[i:]...)
				}
				stack = stack[:i]
				return
			}
		}
	}
	for v := range graph {
		if index[v] == 0 {
			visit(v)
		}
	}
	return longest
}

func TestCyclesAreFound(t *testing.T) {
	graph := map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true}, "d": {"e": true}, "e": {"d": true}, "f": {"a": true}}
	if got := longestCycle(graph); len(got) != 3 {
		t.Errorf("%v", got)
	}
	delete(graph["c"], "a")
	if got := longestCycle(graph); len(got) != 2 {
		t.Errorf("%v", got)
	}
	delete(graph["d"], "e")
	if got := longestCycle(graph); got != nil {
		t.Errorf("%v", got)
	}
}
