package seatbelt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// cost is what a profile of n rules takes: to parse, to index, and for a hundred queries
// in all.
type cost struct{ steps, entries, queries int }

func costOf(t *testing.T, n int, rule func(i int) string, ask func(i int) Query) cost {
	t.Helper()
	var b strings.Builder
	b.WriteString("(version 1)\n(deny default)\n")
	for i := range n {
		b.WriteString(rule(i))
		b.WriteByte('\n')
	}
	m, err := parse(Source{Name: "large.sb", Text: b.String()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := cost{steps: m.steps, entries: m.profile.index.built}
	for i := range 100 {
		v, work := m.profile.evaluate(ask(i * n / 100))
		if !v.Allow {
			t.Fatalf("%d: %s", i, v.Why)
		}
		c.queries += work
	}
	return c
}

func TestALargeProfileCostsInProportionToItsSize(t *testing.T) {
	file := func(p string) Query { return Query{Operation: "file-write-data", Path: p} }
	for _, c := range []struct {
		name    string
		rule    func(i int) string
		ask     func(i int) Query
		perRule int // how much all the queries may take for each rule
	}{
		{"literals", func(i int) string { return fmt.Sprintf(`(allow file-write* (literal "/w/%d"))`, i) },
			func(i int) Query { return file(fmt.Sprintf("/w/%d", i)) }, 0},
		{"directories", func(i int) string { return fmt.Sprintf(`(allow file-write* file-read* (subpath "/w/%d"))`, i) },
			func(i int) Query { return file(fmt.Sprintf("/w/%d/x/y", i)) }, 0},
		{"prefixes", func(i int) string { return fmt.Sprintf(`(allow file-write* (prefix "/w/%d."))`, i) },
			func(i int) Query { return file(fmt.Sprintf("/w/%d.x", i)) }, 0},
		{"names", func(i int) string { return fmt.Sprintf(`(allow mach-lookup (global-name "org.%d"))`, i) },
			func(i int) Query { return Query{Operation: "mach-lookup", Name: fmt.Sprintf("org.%d", i)} }, 0},
		{"conjunctions", func(i int) string {
			return fmt.Sprintf(`(allow file-write* (require-all (vnode-type DIRECTORY) (subpath "/w/%d")))`, i)
		}, func(i int) Query {
			return Query{Operation: "file-write-create", Path: fmt.Sprintf("/w/%d/x", i), VnodeType: "DIRECTORY"}
		}, 0},
		{"exceptions", func(i int) string {
			return fmt.Sprintf(`(allow file-write* (require-not (require-not (literal "/w/%d"))))`, i)
		}, func(i int) Query { return file(fmt.Sprintf("/w/%d", i)) }, 400},
		{"ports", func(i int) string { return fmt.Sprintf(`(allow network-outbound (remote tcp "*:%d"))`, i%65535+1) },
			func(i int) Query {
				return Query{Operation: "network-outbound", Protocol: "tcp", Address: fmt.Sprintf("x:%d", i%65535+1)}
			}, 400},
		{"one expression again and again", func(int) string { return `(allow file-write* (regex #"^/w/[0-9]+$"))` },
			func(i int) Query { return file(fmt.Sprintf("/w/%d", i)) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := kerneltest.Amount(t, 1_000, 5_000, 10_000)
			small, large := costOf(t, n, c.rule, c.ask), costOf(t, 4*n, c.rule, c.ask)
			t.Logf("%d rules: %+v; %d rules: %+v", n, small, 4*n, large)
			if large.steps > 4*small.steps+small.steps/4 || large.entries > 4*small.entries+8 {
				t.Errorf("more than in proportion: %+v, %+v", small, large)
			}
			if most := 100*20 + c.perRule*4*n; large.queries > most {
				t.Errorf("a hundred queries took %d, not %d", large.queries, most)
			}
		})
	}
}

// hostile are profiles that want more than their size pays for.
var hostile = []struct{ name, text, want string }{
	{"loops for ever", "(define (f) (f)) (f)", "nested too deep"},
	{"loops for ever, by name", "(let loop ((i 0)) (loop (+ i 1)))", "nested too deep"},
	{"loops in breadth", "(define l (list 1 2 3 4 5 6 7 8 9 10))\n(define (f n) (if (= n 0) 0 (for-each (lambda (x) (f (- n 1))) l)))\n(f 30)", "too long"},
	{"doubles a string", "(define s \"0123456789abcdef\") (define (f s) (f (string-append s s))) (f s)", "a string of more than"},
	{"keeps many strings", "(define s (string-append " + strings.Repeat(`"0123456789abcdef0123456789abcdef" `, 1000) + "))\n(define (f n l) (if (= n 0) l (f (- n 1) (cons (string-append s s) l))))\n(define (g) (f 400 '()) (g)) (g)", "too long"},
	{"doubles a list", "(define (f l n) (if (= n 0) l (f (append l l) (- n 1)))) (f '(1 2 3) 60)", "too long"},
	{"evaluates without end", "(define (f) (eval (list (quote f)))) (f)", "nested too deep"},
	{"evaluates a deep list", "(define (f l n) (if (= n 0) l (f (list l) (- n 1)))) (eval (f 1 900))", "nested too deep"},
	{"doubles a filter", "(define (f x n) (if (= n 0) x (f (require-all x x) (- n 1)))) (allow file-read* (f (literal \"/\") 60))", "too long"},
	{"nests filters", "(define (f x n) (if (= n 0) x (f (require-not x) (- n 1)))) (allow file-read* (f (literal \"/\") 1200))", "filters nested too deep"},
	{"nests with-filter", strings.Repeat("(with-filter (literal \"/\") ", 400) + "(allow file-read*)" + strings.Repeat(")", 400), ""},
	{"uses one filter in many rules", "(define (f x n) (if (= n 0) x (f (require-all x x) (- n 1))))\n(define x (f (literal \"/\") 12))\n(define l (list 1 2 3 4 5 6 7 8 9 10))\n(define (g n) (if (= n 0) (allow file-read* x) (for-each (lambda (x) (g (- n 1))) l)))\n(g 9)", "too long"},
	{"nests lists", strings.Repeat("(", 100_000), "nested too deep"},
	{"nests quotes", strings.Repeat("'", 100_000) + "a", "nested too deep"},
	{"nests comments", strings.Repeat("#|", 1_000_000), "unterminated comment"},
	{"imports itself", `(import "self")`, "imports nested too deep"},
	{"imports in breadth", `(import "two")`, "more than 256 imports"},
	{"has a long symbol", strings.Repeat("a", 2<<20), "a string of more than"},
	{"has a long string", `"` + strings.Repeat("a", 2<<20) + `"`, "a string of more than"},
	{"has a large regular expression", `(allow file-read* (regex #"((a{200}){200}){200}"))`, "too large"},
	{"has many regular expressions", "(define (f n) (if (= n 0) 0 (begin (allow file-read* (regex (string-append (number->string n) \"(abcdefgh){255}(abcdefgh){255}\"))) (f (- n 1))))) (f 1000)", "too large"},
	{"defines many locals", "(define (f) " + manyDefines() + ") (f)", "definitions in one body"},
	{"compares long strings", "(define s (string-append " + strings.Repeat(`"0123456789abcdef0123456789abcdef" `, 10_000) + "))\n(define (f n) (if (= n 0) 0 (begin (equal? s (string-append s)) (f (- n 1))))) (define (g) (f 100) (g)) (g)", "too long"},
	{"makes many rules", "(define l (list 1 2 3 4 5 6 7 8 9 10))\n(define (g n) (if (= n 0) (allow file-read*) (for-each (lambda (x) (g (- n 1))) l)))\n(g 9)", "more than 250000 rules"},
	{"makes a list of itself", "(define l (list 1)) (length (list l l)) (map (lambda (x) (apply + x)) (list l l))(error \"end\")", "end"},
}

func manyDefines() string {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "(define a%d 1)", i)
	}
	return b.String()
}

func TestAHostileProfileEndsSoonAndSaysWhy(t *testing.T) {
	kerneltest.Long(t)
	find := func(name string) (Source, bool) {
		if name == "two" {
			return Source{Name: name, Text: `(import "one") (import "one") (define (f n) (if (= n 0) 0 (begin (import "one") (f (- n 1))))) (f 300)`}, true
		}
		if name == "one" {
			return Source{Name: name, Text: "(version 1)"}, true
		}
		return Source{Name: name, Text: `(import "self")`}, true
	}
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			_, err := Parse(Source{Name: "hostile.sb", Text: "(version 1)\n" + h.text}, Options{Import: find})
			if h.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, h.want) {
				t.Errorf("%v, not %q", err, h.want)
			}
		})
	}
}

func TestLimitsAreKept(t *testing.T) {
	text := `(version 1) (allow file-read* (subpath (string-append "/a" "/b"))) (allow file-write*) (allow file-read* (regex #"^/abc"))`
	if _, err := Parse(Source{Text: text}, Options{Limits: Limits{Bytes: len(text), Rules: 3, Steps: 400, String: 16, Regexp: 50, Regexps: 50, Depth: 8}}); err != nil {
		t.Errorf("within its limits: %v", err)
	}
	for name, l := range map[string]Limits{
		"bytes": {Bytes: len(text) - 1}, "rules": {Rules: 2}, "steps": {Steps: 40}, "string": {String: 8}, "regexp": {Regexp: 2}, "regexps": {Regexps: 2}, "depth": {Depth: 2},
	} {
		var e *Error
		if _, err := Parse(Source{Text: text}, Options{Limits: l}); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWarningsAreCounted(t *testing.T) {
	p, err := Parse(Source{Text: "(version 1)" + strings.Repeat(`(allow file* (subpath "/tmp"))`, 500)}, Options{Limits: Limits{Warning: 10}})
	if err != nil || len(p.Warnings) != 11 || p.Warnings[10].Kind != More {
		t.Errorf("%d warnings, %v", len(p.Warnings), err)
	}
}
