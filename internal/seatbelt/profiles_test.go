package seatbelt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// testdata/profiles holds profiles in the shapes that are seen in the field, and for each
// a table of what it means:
//
//	param NAME VALUE
//	OPERATION ARGUMENT [ATTRIBUTE=VALUE ..] : VERDICT RULE [step=N]
//
// RULE is the line of the deciding rule, with the file before it if that is another,
// and - for none.

// An expectation is one row.
type expectation struct {
	query seatbelt.Query
	allow bool
	rule  string
	step  int
	text  string
}

func TestProfilesMeanWhatTheirTablesSay(t *testing.T) {
	tables, err := filepath.Glob("testdata/profiles/*.want")
	if err != nil || len(tables) < 25 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	rows := 0
	for _, table := range tables {
		name := strings.TrimSuffix(filepath.Base(table), ".want")
		t.Run(name, func(t *testing.T) {
			params, want := readTable(t, table)
			p := load(t, name, params)
			again, err := seatbelt.Parse(seatbelt.Source{Name: "printed", Text: p.String()}, seatbelt.Options{})
			if err != nil {
				t.Fatalf("the profile's own text: %v", err)
			}
			for _, w := range want {
				check(t, p, w)
				if got, was := again.Evaluate(w.query), p.Evaluate(w.query); got.Allow != was.Allow || got.Step != was.Step {
					t.Errorf("%s: printed and read again it is %v, not %v", w.text, got, was)
				}
			}
			rows += len(want)
		})
	}
	t.Logf("%d profiles, %d rows", len(tables), rows)
}

func check(t *testing.T, p *seatbelt.Profile, w expectation) {
	t.Helper()
	v := p.Evaluate(w.query)
	rule := "-"
	if v.Rule != nil {
		if rule = strconv.Itoa(v.Rule.At.Line); v.Rule.At.Source != p.Source {
			rule = v.Rule.At.String()
		}
	}
	if v.Allow != w.allow || rule != w.rule || w.step != 0 && v.Step != w.step {
		t.Errorf("%s\n\tgot %s %s step=%d: %s", w.text, verdict(v.Allow), rule, v.Step, v.Why)
	}
	if v.Why == "" {
		t.Errorf("%s: no reason", w.text)
	}
}

func verdict(allow bool) string {
	return map[bool]string{true: "allow", false: "deny"}[allow]
}

// load parses a profile of testdata, or one of ours that -n names. Profiles of testdata
// may import each other.
func load(t *testing.T, name string, params map[string]string) *seatbelt.Profile {
	t.Helper()
	src, named := seatbelt.Named(strings.TrimPrefix(name, "named-"))
	if !named {
		text, err := os.ReadFile("testdata/profiles/" + name + ".sb")
		if err != nil {
			t.Fatal(err)
		}
		src = seatbelt.Source{Name: name + ".sb", Text: string(text)}
	}
	p, err := seatbelt.Parse(src, seatbelt.Options{Params: params, Import: func(name string) (seatbelt.Source, bool) {
		if text, err := os.ReadFile("testdata/profiles/" + filepath.Base(name)); err == nil {
			return seatbelt.Source{Name: name, Text: string(text)}, true
		}
		return seatbelt.Import(name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func readTable(t *testing.T, file string) (map[string]string, []expectation) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]string{}
	var rows []expectation
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if f := strings.Fields(line); f[0] == "param" {
			params[f[1]] = f[2]
			continue
		}
		row, err := readRow(line)
		if err != nil {
			t.Fatalf("%s:%d: %v", file, n+1, err)
		}
		row.text = fmt.Sprintf("%s:%d: %s", file, n+1, line)
		rows = append(rows, row)
	}
	return params, rows
}

func readRow(line string) (expectation, error) {
	left, right, ok := strings.Cut(line, " : ")
	if !ok {
		return expectation{}, fmt.Errorf("no colon in %q", line)
	}
	op, rest, _ := strings.Cut(left, " ")
	e := expectation{query: seatbelt.Query{Operation: op, Attributes: map[string]string{}}}
	argument, rest, err := word(rest)
	if err != nil {
		return e, err
	}
	o, _ := operation(op)
	q := &e.query
	switch o.Argument {
	case seatbelt.PathOf:
		q.Path = argument
	case seatbelt.TargetOf:
		q.Target = argument
	case seatbelt.AddressOf:
		q.Protocol = argument
		if argument, rest, err = word(rest); q.Protocol == "unix" {
			q.Path = argument
		} else {
			q.Address = argument
		}
	default:
		if argument != "-" {
			q.Name = argument
		}
	}
	for _, f := range strings.Fields(rest) {
		switch k, v, _ := strings.Cut(f, "="); k {
		case "vnode":
			q.VnodeType = v
		case "extension":
			q.Extensions = append(q.Extensions, v)
		case "peer":
			q.Peer = v
		default:
			q.Attributes[k] = v
		}
	}
	f := strings.Fields(right)
	if len(f) < 2 || f[0] != "allow" && f[0] != "deny" {
		return e, fmt.Errorf("no verdict and rule in %q", line)
	}
	e.allow, e.rule = f[0] == "allow", f[1]
	if len(f) > 2 {
		_, err = fmt.Sscanf(f[2], "step=%d", &e.step)
	}
	return e, err
}

// word cuts the first word, which may be quoted, from a line.
func word(s string) (string, string, error) {
	if strings.HasPrefix(s, `"`) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", err
		}
		w, err := strconv.Unquote(q)
		return w, strings.TrimSpace(s[len(q):]), err
	}
	w, rest, _ := strings.Cut(s, " ")
	return w, rest, nil
}

func TestAFilterOfNothingIsPrintedSo(t *testing.T) {
	p := mustParse(t, `(allow file-read* (path-ancestors "/"))`)
	again, err := seatbelt.Parse(seatbelt.Source{Text: p.String()}, seatbelt.Options{})
	if err != nil || again.String() != p.String() || again.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: "/"}).Allow {
		t.Errorf("%v: %s", err, p)
	}
}

// operation returns the operation of that name.
func operation(name string) (seatbelt.Operation, bool) {
	for _, o := range seatbelt.Operations() {
		if o.Name == name {
			return o, true
		}
	}
	return seatbelt.Operation{}, false
}
