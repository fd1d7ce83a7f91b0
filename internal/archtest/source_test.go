package archtest

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// words that must not stand in any file of the module, in pieces so that this
// file does not have them.
var words = []*regexp.Regexp{
	regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`),
	regexp.MustCompile(`(?i)not ` + `implemented|for ` + `now\b`),
	regexp.MustCompile(`(^|[^\w.])/wo` + `rk/`),
	regexp.MustCompile(`DES` + `IGN\.md|STY` + `LE\.md|FIE` + `LD\.md`),
	regexp.MustCompile(`https?://(10|172|192)\.\d+\.\d+\.\d+`),
}

// TestNothingIsLeftForLater reads every text of the module, not only Go's.
func TestNothingIsLeftForLater(t *testing.T) {
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "cache"):
			return fs.SkipDir
		case !d.Type().IsRegular() || d.Name() == ".git": // a worktree's names a place of its machine
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil || strings.ContainsRune(string(text[:min(len(text), 512)]), 0) {
			return err // a program
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, w := range words {
				if found := w.FindString(line); found != "" {
					t.Errorf("%s:%d: %q has no place here", strings.TrimPrefix(p, root+"/"), i+1, found)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ownWords are methods whose contract is another package's: fmt, errors, json.
var ownWords = []string{"Error", "Unwrap", "String", "MarshalText", "UnmarshalText", "MarshalJSON", "UnmarshalJSON", "GoString", "Is"}

func TestEveryExportSaysWhatItDoes(t *testing.T) {
	for _, f := range files(t) {
		if f.test || f.ignored {
			continue
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				checkFunc(t, f, d)
			case *ast.GenDecl:
				checkGroup(t, f, d)
			}
		}
	}
}

func checkFunc(t *testing.T, f *file, d *ast.FuncDecl) {
	t.Helper()
	name := d.Name.Name
	if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d)) {
		return
	}
	if d.Recv != nil && d.Doc == nil && slices.Contains(ownWords, name) {
		return
	}
	if !begins(d.Doc, name) {
		t.Errorf("%s: the comment of %s does not begin with its name", f.path, name)
	}
}

func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// checkGroup wants a comment on each type, and on each constant or variable or
// the group that it stands in.
func checkGroup(t *testing.T, f *file, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			doc := s.Doc
			if doc == nil && len(d.Specs) == 1 {
				doc = d.Doc
			}
			if s.Name.IsExported() && !begins(doc, s.Name.Name) && !begins(s.Comment, s.Name.Name) {
				t.Errorf("%s: the comment of type %s does not begin with its name", f.path, s.Name.Name)
			}
		case *ast.ValueSpec:
			if s.Names[0].IsExported() && d.Tok != token.IMPORT && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				t.Errorf("%s: %s has no comment", f.path, s.Names[0].Name)
			}
		}
	}
}

func begins(doc *ast.CommentGroup, name string) bool {
	if doc == nil {
		return false
	}
	text := doc.Text()
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	return strings.HasPrefix(text, name)
}
