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
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snippetHead is what stands before a snippet: what it may import, and the variables that its page speaks of.
const snippetHead = `package snippet
import (
	"context"; "errors"; "fmt"; "io"; "io/fs"; "log/slog"; "os"; "os/exec"; "path/filepath"; "sync"; "syscall"; "testing"; "time"
	"mcp"
	"` + module + `/sandbox"; "` + module + `/sandbox/policy"; "` + module + `/sandbox/rootfs"
	"` + module + `/sandbox/sandboxtest"; "` + module + `/sandbox/sbpl"
)
var (
	ctx context.Context
	s *sandbox.Sandbox
	sess *sandbox.Session
	cmd *sandbox.Cmd
	p sandbox.Policy
	profile *sbpl.Profile
	dir, home, ws, app, cache, workspace, script, submission, text, token string
	edited []byte
	walk fs.WalkDirFunc
	client interface{ Connect(context.Context, any, any) (any, error) }
	check func(context.Context, io.Reader, io.Writer) error
	askUser func(context.Context, string) bool
)
`

// anotherModule is as much of an MCP library as a snippet needs.
const anotherModule = `package mcp
import "os/exec"
type CommandTransport struct { Command *exec.Cmd }
`

var snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// TestSnippetsOfPagesCompile type-checks each piece of Go in README.md and docs: a program, declarations, or statements of a function
// that returns an error. What it declares and does not use is the reader's.
func TestSnippetsOfPagesCompile(t *testing.T) {
	_, exported := list(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range snippet.FindAllSubmatchIndex(text, -1) {
			found++
			line := 1 + strings.Count(string(text[:at[2]]), "\n")
			for _, err := range checkSnippet(string(text[at[2]:at[3]]), exported) {
				t.Errorf("%s, the snippet at line %d: %s", filepath.Base(page), line, err)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d snippets only: the pattern finds them no more", found)
	}
}

// TestASnippetThatDoesNotCompileIsFound, in each of the three forms.
func TestASnippetThatDoesNotCompileIsFound(t *testing.T) {
	_, exported := list(t)
	for _, text := range []string{
		"package main\nfunc main() { undefined() }\n",
		"func f(p sandbox.Policy) { p.NoSuchField = 1 }\n",
		"p.Files.Read = 1\n",
		"p.Files.NoSuchField = nil\n",
		"this is no Go\n",
	} {
		if len(checkSnippet(text, exported)) == 0 {
			t.Errorf("it compiles: %s", text)
		}
	}
	if errs := checkSnippet("out, err := cmd.Output()\n", exported); len(errs) > 0 {
		t.Error(errs)
	}
}

// checkSnippet returns what keeps it from compiling, but for what is not used.
func checkSnippet(text string, exported map[string]string) (errs []error) {
	fset := token.NewFileSet()
	file := parseSnippet(fset, text)
	if file == nil {
		return []error{fmt.Errorf("it is no Go:\n%s", text)}
	}
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exported[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exported[path])
	})
	c := types.Config{Importer: importing(func(path string) (*types.Package, error) {
		if path != "mcp" {
			return compiled.Import(path)
		}
		f, err := parser.ParseFile(fset, "mcp.go", anotherModule, 0)
		if err != nil {
			return nil, err
		}
		return (&types.Config{Importer: compiled}).Check("mcp", fset, []*ast.File{f}, nil)
	})}
	c.Error = func(err error) {
		if e, ok := err.(types.Error); !ok || !e.Soft {
			errs = append(errs, err)
		}
	}
	c.Check("snippet", fset, []*ast.File{file}, nil)
	return errs
}

// parseSnippet takes a text for the first of a program, declarations and statements that it is; nil: it is none.
func parseSnippet(fset *token.FileSet, text string) *ast.File {
	for _, source := range []string{text, snippetHead + text, snippetHead + "func _() error {\n{\n" + text + "}\nreturn nil\n}\n"} {
		if f, err := parser.ParseFile(fset, "snippet.go", source, 0); err == nil {
			return f
		}
	}
	return nil
}

// importing is a types.Importer.
type importing func(path string) (*types.Package, error)

func (f importing) Import(path string) (*types.Package, error) { return f(path) }
