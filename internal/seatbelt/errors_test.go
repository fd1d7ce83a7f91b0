package seatbelt_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

func parse(text string) (*seatbelt.Profile, error) {
	return seatbelt.Parse(seatbelt.Source{Name: "<input string>", Text: text}, seatbelt.Options{Params: map[string]string{"HOME": "/Users/me"}})
}

func mustParse(t testing.TB, text string) *seatbelt.Profile {
	t.Helper()
	p, err := parse("(version 1)\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAnErrorSaysWhatSandboxExecSays(t *testing.T) {
	for text, want := range map[string]string{
		"(version 1)\n(deny default)\n\n\n  (setenv \"A\" \"b\")":   "unbound variable: setenv at <input string>, line 5",
		"(version 1)\n(allow network* (remote ip \"10.0.0.1:80\"))": "host must be * or localhost in network address at <input string>, line 2",
	} {
		_, err := parse(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, not %s", text, err, want)
		}
	}
}

func TestAnErrorHasAPlace(t *testing.T) {
	_, err := parse("(version 1)\n(allow file-read*\n   (subpath 7))")
	var e *seatbelt.Error
	if !errors.As(err, &e) || e.Source != "<input string>" || e.Line != 3 || e.Column != 4 {
		t.Errorf("%#v", err)
	}
}

// bad are profiles that are none, each with a part of what is said of it.
var bad = []struct{ name, text, want string }{
	{"no version", "(deny default)", "missing version"},
	{"another version", "(version 2)", "unsupported version"},
	{"an open list", "(version 1", "unterminated list"},
	{"a closing parenthesis too many", "(version 1))", "unexpected )"},
	{"brackets crossed", "(version 1]", "unexpected ]"},
	{"an open string", `(version 1) (allow file* (literal "/x))`, "unterminated string"},
	{"an open raw string", `(version 1) (allow file* (regex #"x))`, "unterminated string"},
	{"a raw string with an escaped quote", `(version 1) (allow file* (regex #"x\"y"))`, "ambiguous"},
	{"an open comment", "(version 1) #| #| |#", "unterminated comment"},
	{"an escape that ends the text", `(version 1) "\`, "unterminated string"},
	{"half a hexadecimal escape", `(version 1) "\x4"`, "hexadecimal"},
	{"an octal escape too large", `(version 1) "\777"`, "octal"},
	{"a sharp sign and nonsense", "(version 1) #nonsense", "undefined sharp expression"},
	{"a dot that begins a list", "(version 1) (. a)", "unexpected ."},
	{"a dot that ends a list", "(version 1) '(a .)", "unexpected )"},
	{"two forms behind a dot", "(version 1) '(a . b c)", "more than one form"},
	{"a dotted call", "(version 1) (list . 1)", "dotted"},
	{"a quote of nothing", "(version 1) '", "nothing to quote"},
	{"an operation that does not exist", "(version 1) (allow file-frobnicate)", "unbound variable: file-frobnicate"},
	{"a wildcard that does not exist", "(version 1) (allow file-read-d*)", "unbound variable: file-read-d*"},
	{"a filter that does not exist", `(version 1) (allow file* (glob "/x"))`, "unbound variable: glob"},
	{"a modifier that does not exist", "(version 1) (deny default (with frob))", "unknown modifier: frob"},
	{"a message that is missing", "(version 1) (deny default (with message))", "wrong number"},
	{"a rule without an operation", `(version 1) (allow (literal "/x"))`, "no operation"},
	{"a rule of nothing", "(version 1) (allow)", "wrong number"},
	{"an operation behind a filter", `(version 1) (allow file-read* (literal "/x") file-write*)`, "behind a filter"},
	{"a string for a filter", `(version 1) (allow file-read* "/x")`, "not a string"},
	{"a filter on a missing parameter", `(version 1) (allow file-read* (subpath (param "NONE")))`, "subpath: argument 1 must be: string"},
	{"a string joined with a missing parameter", `(version 1) (string-append "a" (param "NONE"))`, "string-append: argument 2 must be: string"},
	{"a number for a path", "(version 1) (allow file* (literal 1))", "must be: string"},
	{"a constant that does not exist", "(version 1) (allow signal (target everyone))", "no such constant: everyone"},
	{"a file type that does not exist", "(version 1) (allow file* (vnode-type PIPE))", "no such constant: PIPE"},
	{"require-not of two", `(version 1) (allow file* (require-not (literal "/a") (literal "/b")))`, "wrong number"},
	{"require-all of a string", `(version 1) (allow file* (require-all "/a"))`, "must be: filter"},
	{"an address without a port", `(version 1) (allow network* (remote ip "localhost"))`, "port must be given"},
	{"port 0", `(version 1) (allow network* (remote ip "localhost:0"))`, "port must be *"},
	{"a port too high", `(version 1) (allow network* (remote ip "*:65536"))`, "port must be *"},
	{"a protocol that does not exist", `(version 1) (allow network* (remote sctp "*:1"))`, "must be: a protocol"},
	{"a path filter for tcp", `(version 1) (allow network* (remote tcp (literal "/x")))`, "is for a unix-socket"},
	{"a regular expression that is none", `(version 1) (allow file* (regex #"^/(a"))`, "unmatched ("},
	{"a function with too few arguments", "(version 1) (define (f a b) a) (f 1)", "f: wrong number of arguments: 1"},
	{"a call of a string", `(version 1) ("f")`, "a string is not a procedure"},
	{"a call of an operation", "(version 1) (file-read* 1)", "an operation is not a procedure"},
	{"set! of nothing", "(version 1) (set! x 1)", "unbound variable: x"},
	{"macros", "(version 1) (macro (f x) x)", "unbound variable: macro"},
	{"eval of a filter", `(version 1) (eval (list 'allow 'file* (literal "/x")))`, "a filter is no form"},
	{"eval of a local variable", "(version 1) (let ((x 1)) (eval 'x))", "unbound variable: x"},
	{"eval of a pair", "(version 1) (eval '(allow . default))", "dotted"},
	{"load", `(version 1) (load "/etc/passwd")`, "unbound variable: load"},
	{"files", `(version 1) (open-input-file "/etc/passwd")`, "unbound variable: open-input-file"},
	{"an import that does not exist", `(version 1) (import "/etc/passwd")`, "unable to open /etc/passwd"},
	{"a number too large", "(version 1) (* 9223372036854775807 2)", "number too large"},
	{"a sum too large", "(version 1) (+ 9223372036854775807 1)", "number too large"},
	{"the least number negated", "(version 1) (- 0 -9223372036854775808)", "number too large"},
	{"a substring beyond the end", `(version 1) (substring "abc" 2 9)`, "out of bounds"},
	{"a substring before the start", `(version 1) (substring "abc" -1 2)`, "out of bounds"},
	{"an error of its own", `(version 1) (error "give me" 'HOME 7)`, "give me HOME 7"},
	{"an error without words", "(version 1) (error)", "error"},
	{"splicing into nothing", "(version 1) `,@(list 1)", "nothing to splice into"},
	{"splicing what is no list", "(version 1) `(a ,@1 b)", "must be: list"},
	{"nested quasiquotes", "(version 1) `(a `b)", "not supported"},
	{"a NUL", "(version 1) a\x00b", "NUL"},
}

func TestWhatIsNoProfileIsRefused(t *testing.T) {
	for _, b := range bad {
		t.Run(b.name, func(t *testing.T) {
			p, err := parse(b.text)
			var e *seatbelt.Error
			if !errors.As(err, &e) || p != nil {
				t.Fatalf("%v, %v", p, err)
			}
			if !strings.Contains(e.Message, b.want) || e.Line < 1 || e.Column < 1 {
				t.Errorf("%s at %d:%d, not %q", e.Message, e.Line, e.Column, b.want)
			}
		})
	}
}

func TestAFragmentNeedsNoVersion(t *testing.T) {
	p, err := seatbelt.Parse(seatbelt.Source{Text: "(allow default)"}, seatbelt.Options{Fragment: true})
	if err != nil || p.Version != 0 || len(p.Rules) != 1 {
		t.Errorf("%v, %v", p, err)
	}
}

func TestNewerOperationsStandBelowTheWildcardTheyBeginWith(t *testing.T) {
	text := "(version 1) (deny default) (allow file-read*) (deny file-read-newly) (allow mach-fancy-thing (with shiny))"
	p, err := seatbelt.Parse(seatbelt.Source{Text: text}, seatbelt.Options{NewerOperations: true})
	if err != nil {
		t.Fatal(err)
	}
	newer := 0
	for _, w := range p.Warnings {
		if w.Kind == seatbelt.Newer {
			newer++
		}
	}
	if newer != 3 {
		t.Errorf("%d warnings of new names, not 3: %v", newer, p.Warnings)
	}
	for op, want := range map[string]bool{"file-read-newly": false, "mach-fancy-thing": true, "mach-lookup": false} {
		if v := p.Evaluate(seatbelt.Query{Operation: op, Path: "/x", Name: "x"}); v.Allow != want {
			t.Errorf("%s: %v", op, v)
		}
	}
}
