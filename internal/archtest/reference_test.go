package archtest

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/printer"
	"go/token"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write docs/policy.md anew")

// reference is the page that is generated from the doc comments of the policy's types.
const reference = root + "/docs/policy.md"

// referenced lists the types of a policy in the page's order, with the package that declares each.
var referenced = []struct{ room, name string }{
	{"sandbox/policy", "Policy"}, {"sandbox/policy", "Bound"}, {"sandbox/policy", "Files"}, {"sandbox/policy", "File"}, {"sandbox/policy", "Protect"}, {"sandbox/policy", "Env"},
	{"sandbox/policy", "Limits"}, {"rlimit", "Limits"}, {"rlimit", "Limit"},
	{"sandbox/policy", "Network"}, {"sandbox/policy", "NetworkLimits"}, {"sandbox/policy", "Credential"}, {"sandbox/policy", "RequestRule"},
	{"seccomp", "Filter"}, {"seccomp", "Rule"}, {"seccomp", "Arg"},
	{"sandbox/rootfs", "Layout"}, {"sandbox/rootfs", "Entry"}, {"sandbox/rootfs", "Bind"}, {"sandbox/rootfs", "Tmpfs"}, {"sandbox/rootfs", "Dir"}, {"sandbox/rootfs", "File"}, {"sandbox/rootfs", "DataBind"}, {"sandbox/rootfs", "Symlink"},
	{"sandbox/rootfs", "Chmod"}, {"sandbox/rootfs", "RemountReadOnly"}, {"sandbox/rootfs", "Proc"}, {"sandbox/rootfs", "Dev"}, {"sandbox/rootfs", "Mqueue"}, {"sandbox/rootfs", "Overlay"},
	{"sandbox/rootfs", "TmpOverlay"}, {"sandbox/rootfs", "ReadOnlyOverlay"}, {"sandbox/rootfs", "Namespaces"}, {"internal/plan", "IDs"}, {"sandbox/rootfs", "Privileges"}, {"sandbox/policy", "Note"},
}

const preface = `# Policy reference

Every field of a [policy](https://pkg.go.dev/github.com/holdfast-dev/holdfast/sandbox/policy#Policy), with what its zero value means. The zero
Policy allows nothing: the tool cannot even be found. Presets are the place to start from: [getting-started.md](getting-started.md).

This page is generated from the doc comments. After a change: ` + "`go test -run TestPolicyReference ./internal/archtest -update`" + `.

`

// TestPolicyReference holds docs/policy.md to the doc comments of the policy's types.
func TestPolicyReference(t *testing.T) {
	r := &referencePage{t: t, types: map[string]declared{}}
	for _, f := range files(t) {
		if !f.test && !f.ignored {
			r.collect(f)
		}
	}
	text := r.render()
	if *update {
		if err := os.WriteFile(reference, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(reference)
	if err != nil || string(page) != text {
		t.Errorf("docs/policy.md is not what the doc comments say (%v): go test -run TestPolicyReference ./internal/archtest -update", err)
	}
}

// declared is a type with its documentation.
type declared struct {
	doc  string
	spec *ast.TypeSpec
}

type referencePage struct {
	t      *testing.T
	types  map[string]declared // by "room.Name"
	consts []*ast.ValueSpec    // of package policy: BoundFiles, PlaceBearer ...
	out    strings.Builder
}

func (r *referencePage) collect(f *file) {
	for _, d := range f.syntax.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range gen.Specs {
			if value, ok := s.(*ast.ValueSpec); ok && gen.Tok == token.CONST && f.room == "sandbox/policy" {
				r.consts = append(r.consts, value)
			}
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := spec.Doc
			if doc == nil {
				doc = gen.Doc
			}
			r.types[f.room+"."+spec.Name.Name] = declared{doc.Text(), spec}
		}
	}
}

func (r *referencePage) render() string {
	r.out.WriteString(preface)
	for _, t := range referenced {
		fmt.Fprintf(&r.out, "- [%s](#%s)\n", title(t.room, t.name), anchor(t.room, t.name))
	}
	for _, t := range referenced {
		d, found := r.types[t.room+"."+t.name]
		if !found {
			r.t.Errorf("there is no type %s in %s", t.name, t.room)
			continue
		}
		fmt.Fprintf(&r.out, "\n## %s\n\n%s", title(t.room, t.name), r.markdown(t.room, d.doc))
		r.constants(t.name)
		if fields, ok := d.spec.Type.(*ast.StructType); ok {
			r.fields(t.room, title(t.room, t.name), fields.Fields.List)
		}
	}
	return r.out.String()
}

// constants lists the constants that are values of a type or of one of its fields, by the prefix of their names.
func (r *referencePage) constants(name string) {
	prefix, ok := map[string]string{"Bound": "Bound", "Credential": "Place"}[name]
	if !ok {
		return
	}
	r.out.WriteString("\n")
	for _, c := range r.consts {
		if len(c.Names) == 1 && strings.HasPrefix(c.Names[0].Name, prefix) {
			fmt.Fprintf(&r.out, "- `%s`: %s\n", c.Names[0].Name, strings.TrimSpace(c.Comment.Text()))
		}
	}
}

// title is a type's name with its package's, but for the policy's own.
func title(room, name string) string {
	if room == "sandbox/policy" || room == "internal/plan" {
		return name
	}
	return path.Base(room) + "." + name
}

// anchor is what GitHub makes of a title.
func anchor(room, name string) string {
	return strings.ReplaceAll(strings.ToLower(title(room, name)), ".", "")
}

// fields prints the fields of a type. One without a comment belongs to the one before it, if that has a comment above.
func (r *referencePage) fields(room, owner string, list []*ast.Field) {
	for i := 0; i < len(list); {
		f := list[i]
		names, kind := exportedNames(f), source(f.Type)
		for i++; f.Doc != nil && i < len(list) && list[i].Doc == nil && list[i].Comment == nil && source(list[i].Type) == kind; i++ {
			names = append(names, exportedNames(list[i])...)
		}
		if len(names) == 0 {
			continue
		}
		text := f.Doc.Text()
		if text == "" {
			text = f.Comment.Text()
		}
		fmt.Fprintf(&r.out, "\n### %s.%s `%s`\n", owner, strings.Join(names, ", "), kind)
		if text != "" {
			r.out.WriteString("\n" + r.markdown(room, text))
		}
		zero := zeroMeaning(kind, text)
		if zero == "" {
			r.t.Errorf("%s.%s: the comment of a %s has to say what zero means, as in \"zero: no limit\"", owner, names[0], kind)
		}
		fmt.Fprintf(&r.out, "\nZero value: %s.\n", zero)
	}
}

func exportedNames(f *ast.Field) []string {
	var names []string
	for _, id := range f.Names {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	return names
}

func source(e ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		return err.Error()
	}
	return b.String()
}

// said finds what a comment says of the zero value: "Zero: half of the machine's memory".
var said = regexp.MustCompile(`(?:[Zz]ero|[Nn]il|[Nn]one|False|""|Nil and empty are the same): ([^.;:]+(?:\.[A-Za-z(][^.;:]*)*)`)

// zeroMeaning is what the zero value of a field means: what its comment says, or what it means for every field of that type.
func zeroMeaning(kind, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if m := said.FindStringSubmatch(text); m != nil {
		return strings.TrimRight(m[1], " ,")
	}
	switch {
	case kind == "bool", strings.Contains(text, "bool"):
		return "no"
	case strings.HasPrefix(kind, "["), strings.HasPrefix(kind, "map"), kind == "string":
		return "none"
	case strings.HasPrefix(kind, "*"), strings.HasPrefix(kind, "func"), kind == "Capture":
		return "none"
	}
	for _, t := range referenced {
		if title(t.room, t.name) == kind {
			return "that of [" + kind + "](#" + anchor(t.room, t.name) + ")"
		}
	}
	for _, word := range []string{"zero", "Zero", "0 ", "default"} {
		if strings.Contains(text, word) {
			return "see above"
		}
	}
	return zeroOf[kind]
}

// zeroOf is what zero means for types whose fields need not say it.
var zeroOf = map[string]string{
	"fs.FileMode": "no permission bits", "uint64": "0", "int": "0", "uint8": "0", "Action": "errno(EPERM)", "Op": "==",
}

// markdown renders a doc comment, with links to the types of this page and to pkg.go.dev.
func (r *referencePage) markdown(room, text string) string {
	var parser comment.Parser
	parser.LookupSym = func(recv, name string) bool { return recv == "" || ast.IsExported(recv) }
	var p comment.Printer
	p.HeadingLevel = 4
	p.DocLinkURL = func(link *comment.DocLink) string {
		from := room
		if link.ImportPath != "" {
			from = strings.TrimPrefix(link.ImportPath, module+"/")
		}
		for _, t := range referenced {
			if t.room == from && t.name == link.Name && link.Recv == "" {
				return "#" + anchor(t.room, t.name)
			}
		}
		name := link.Name
		if link.Recv != "" {
			name = link.Recv + "." + name
		}
		if link.ImportPath != "" {
			return "https://pkg.go.dev/" + link.ImportPath + "#" + name
		}
		return "https://pkg.go.dev/" + module + "/" + from + "#" + name
	}
	var b strings.Builder
	for line := range strings.Lines(string(p.Markdown(parser.Parse(text)))) {
		b.WriteString(wrap(line))
	}
	return b.String()
}

// wrap breaks a line of prose at about 120 characters.
func wrap(line string) string {
	const most = 120
	if strings.HasPrefix(line, "\t") || utf8.RuneCountInString(line) <= most {
		return line
	}
	indent := ""
	if bullet := strings.TrimLeft(line, " "); strings.HasPrefix(bullet, "- ") {
		indent = strings.Repeat(" ", len(line)-len(bullet)+2)
	}
	var b strings.Builder
	width := 0
	for i, word := range strings.Split(strings.TrimSuffix(line, "\n"), " ") {
		switch {
		case i == 0:
		case width+1+utf8.RuneCountInString(word) > most:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteString(" ")
			width++
		}
		b.WriteString(word)
		width += utf8.RuneCountInString(word)
	}
	return b.String() + "\n"
}
