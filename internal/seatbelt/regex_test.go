package seatbelt_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

func TestRegularExpressionsArePosixOnes(t *testing.T) {
	for _, c := range []struct{ re, matches, not string }{
		{`^/a/b$`, "/a/b", "/a/bc /x/a/b"},
		{`/b`, "/a/b /b/c /a/bc", "/a/c"},
		{`^/a.c$`, "/abc /a/c", "/ac"},
		{`^/a\.c$`, "/a.c", "/abc"},
		{`^/(a|bc)*$`, "/ /a /bca", "/b"},
		{`^/a+?$`, "/ /a /aa", "/b"},   // (a+)?, not the least of a+
		{`^/(ab)+*$`, "/ /abab", "/a"}, // ((ab)+)*
		{`^/a{2}$`, "/aa", "/a /aaa"},
		{`^/a{1,2}$`, "/a /aa", "/ /aaa"},
		{`^/a{2,}$`, "/aa /aaaa", "/a"},
		{`^/a{$`, "/a{", "/a"},
		{`^/a{x}$`, "/a{x}", "/ax"},
		{`^/[abc]$`, "/a /c", "/d"},
		{`^/[^abc]$`, "/d", "/a"},
		{`^/[]a]$`, "/] /a", "/b"},
		{`^/[^]a]$`, "/b", "/] /a"},
		{`^/[a-c-]$`, "/b /-", "/d"},
		{`^/[[:digit:]x]+$`, "/12x", "/y"},
		{`^/[\-\]\\]$`, `/- /] /\`, "/a"},
		{`^/[\w.]+$`, "/aZ_9.", "/a-b"},
		{`^/[a&&b[~]$`, "/& /[ /~ /a", "/c"},
		{`^/é+$`, "/é /éé", "/e"},
		{`^/ttys?[0-9]*$`, "/tty /ttys0 /tty12", "/ttyx"},
		{`(^|/)\.git(/|$)`, "/x/.git /.git/a", "/x.git /.gitx"},
		{`\$HOME\^`, "/$HOME^", "/HOME"},
	} {
		p := mustParse(t, "(allow file-read* (regex #\""+c.re+"\"))")
		for _, s := range strings.Fields(c.matches) {
			if !p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: s}).Allow {
				t.Errorf("%s does not match %s", c.re, s)
			}
		}
		for _, s := range strings.Fields(c.not) {
			if p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: s}).Allow {
				t.Errorf("%s matches %s", c.re, s)
			}
		}
	}
}

func TestADotMatchesANewline(t *testing.T) {
	p := mustParse(t, `(deny file-read* (regex #"^/secret.key$")) (allow default)`)
	if p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: "/secret\nkey"}).Allow {
		t.Error("a newline in a name escapes a deny")
	}
}

func TestADollarIsTheVeryEnd(t *testing.T) {
	p := mustParse(t, `(deny default) (allow file-read* (regex #"^/public$"))`)
	if p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: "/public\n"}).Allow {
		t.Error("a trailing newline passes $")
	}
}

func TestRegularExpressionsThatAreNotPosixAreRefused(t *testing.T) {
	for _, re := range []string{
		`(`, `)`, `a)`, `[a`, `[]`, `[^]`, `*a`, `+`, `a|*`, `(?i)a`, `(?!a)`, `(?:a)`, `\d`, `a\w`, `\1`, `(a)\1`, `[\d]`, `\`, `[\`, `[[.a.]]`, `[[=a=]]`,
		`[[:nonsense:]]`, `[[:alpha`, `[z-a]`, `a{256}`, `a{3,2}`, `a**********`, "\xff", `(a{200}){200}`, `((((a{100}){100}){100}){100}){100}`,
		strings.Repeat("(", 200) + strings.Repeat(")", 200),
	} {
		_, err := seatbelt.Parse(seatbelt.Source{Text: `(version 1) (allow file-read* (regex (param "RE")))`}, seatbelt.Options{Params: map[string]string{"RE": re}})
		if err == nil || !strings.Contains(err.Error(), "regular expression") {
			t.Errorf("%q: %v", re, err)
		}
	}
}

func TestRegexQuoteMatchesItself(t *testing.T) {
	for _, s := range []string{`/a.b`, `/a[b]`, `/(x)*`, `/{1}`, `/^$`, `/a\b`, `/a|b`, "/é", `/-]`, `/ ?+`} {
		p, err := seatbelt.Parse(seatbelt.Source{Text: `(version 1) (allow file-read* (regex (string-append "^" (regex-quote (param "P")) "$")))`},
			seatbelt.Options{Params: map[string]string{"P": s}})
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		for path, want := range map[string]bool{s: true, s + "x": false, "/b": false, "/a": false} {
			if got := p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: path}).Allow; got != want {
				t.Errorf("regex-quote of %q and %q: %v", s, path, got)
			}
		}
	}
}
