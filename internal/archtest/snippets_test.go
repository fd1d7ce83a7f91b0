package archtest

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snippetHead is what stands before a snippet: what it may import, and the variables that its page speaks of.
const snippetHead = `package snippet
import (
	"context"; "errors"; "fmt"; "io"; "io/fs"; "log/slog"; "os"; "os/exec"; "path/filepath"; "runtime"; "sync"; "syscall"; "testing"; "time"
	"mcp"
	"` + module + `/docs/hosts"; "` + module + `/landlock"; "` + module + `/landlock/process"; "` + module + `/rlimit"; "` + module + `/seccomp"
	"` + module + `/sandbox"; "` + module + `/sandbox/policy"; "` + module + `/sandbox/rootfs"
	"` + module + `/sandbox/capture"; "` + module + `/sandbox/sandboxtest"; "` + module + `/sandbox/sbpl"
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
	t *testing.T
	askUser func(context.Context, string) bool
)
`

// anotherModule is as much of an MCP library as a snippet needs.
const anotherModule = `package mcp
import "os/exec"
type CommandTransport struct { Command *exec.Cmd }
`

var snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// TestSnippetsCompile type-checks each piece of Go in README.md, in docs, and in the documentation of a package that users import: a
// program, declarations, or statements of a function that returns an error. What it declares and does not use is the reader's.
func TestSnippetsCompile(t *testing.T) {
	c := newSnippetChecker(t)
	t.Run("pages", func(t *testing.T) {
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
				for _, err := range c.check(string(text[at[2]:at[3]])) {
					t.Errorf("%s, the snippet at line %d: %s", filepath.Base(page), line, err)
				}
			}
		}
		if found < 30 {
			t.Errorf("%d snippets only: the pattern finds them no more", found)
		}
	})
	t.Run("packages", func(t *testing.T) {
		found := 0
		for _, f := range files(t) {
			if f.test || f.syntax.Doc == nil || f.room == "." || strings.HasPrefix(f.room, "internal") || strings.HasPrefix(f.room, "examples") {
				continue
			}
			for _, block := range new(comment.Parser).Parse(f.syntax.Doc.Text()).Content {
				if code, ok := block.(*comment.Code); ok {
					found++
					for _, err := range c.check(code.Text) {
						t.Errorf("%s: %s", f.path, err)
					}
				}
			}
		}
		if found < 10 {
			t.Errorf("%d snippets only: the parser finds them no more", found)
		}
	})
	t.Run("those that do not", func(t *testing.T) {
		for _, text := range []string{
			"package main\nfunc main() { undefined() }\n",
			"func f(p sandbox.Policy) { p.NoSuchField = 1 }\n",
			"p.Files.Read = 1\n",
			"p.Files.NoSuchField = nil\n",
			"this is no Go\n",
		} {
			if len(c.check(text)) == 0 {
				t.Errorf("it compiles: %s", text)
			}
		}
	})
}

// A snippetChecker type-checks snippets against the packages that have been compiled.
type snippetChecker struct {
	fset    *token.FileSet
	another *types.Package
	types.Importer
}

func newSnippetChecker(t *testing.T) *snippetChecker {
	_, exported := list(t)
	fset := token.NewFileSet()
	c := &snippetChecker{fset: fset, Importer: compiled(fset, exported)}
	f, err := parser.ParseFile(c.fset, "mcp.go", anotherModule, 0)
	if err == nil {
		c.another, err = (&types.Config{Importer: c.Importer}).Check("mcp", c.fset, []*ast.File{f}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Import imports what snippetHead names.
func (c *snippetChecker) Import(path string) (*types.Package, error) {
	if path == c.another.Path() {
		return c.another, nil
	}
	return c.Importer.Import(path)
}

// check returns what keeps a snippet from compiling, but for what is not used.
func (c *snippetChecker) check(text string) (errs []error) {
	file := c.parse(text)
	if file == nil {
		return []error{fmt.Errorf("it is no Go:\n%s", text)}
	}
	config := types.Config{Importer: c, Error: func(err error) {
		if e, ok := err.(types.Error); !ok || !e.Soft {
			errs = append(errs, err)
		}
	}}
	config.Check("snippet", c.fset, []*ast.File{file}, nil)
	return errs
}

// parse takes a text for the first of a program, declarations and statements that it is; nil: it is none.
func (c *snippetChecker) parse(text string) *ast.File {
	for _, source := range []string{text, snippetHead + text, snippetHead + "func _() error {\n{\n" + text + "}\nreturn nil\n}\n"} {
		if f, err := parser.ParseFile(c.fset, "snippet.go", source, 0); err == nil {
			return f
		}
	}
	return nil
}
