package sbpl

import (
	"slices"
	"strings"
	"testing"
)

func TestExpressionsWithAPlainMeaning(t *testing.T) {
	tests := []struct {
		text, root, pattern string
		whole               bool
	}{
		{`^/ws/`, "/ws", "", true},
		{`^/ws/.*`, "/ws", "", true},
		{`^/ws(/|$)`, "/ws", "", true},
		{`^/ws(/.*)?$`, "/ws", "", true},
		{`^/ws`, "/", "", false},
		{`^/ws$`, "/", "", false},
		{`^/ws/\.cache/`, "/ws/.cache", "", true},
		{`^/dev/ttys[0-9]+$`, "/dev", "", false},
		{`^/ws/a*/`, "/ws", "", false},
		{`^(/private)?/tmp/`, "/", "", false},
		{`/\.env$`, "/", ".env", false},
		{`/\.env[^/]*$`, "/", ".env*", false},
		{`(^|/)\.git/hooks(/|$)`, "/", ".git/hooks", false},
		{`^.*/\.npmrc$`, "/", ".npmrc", false},
		{`\.pem$`, "/", "", false},
		{`/a.b$`, "/", "", false},
		{`/a`, "/", "", false},
	}
	for _, test := range tests {
		e := newExpansion(0, test.text)
		if e.root != test.root || e.pattern != test.pattern || e.whole != test.whole {
			t.Errorf("%s: root %q, pattern %q, whole %v", test.text, e.root, e.pattern, e.whole)
		}
	}
}

func TestRulesSpeakOfThisHost(t *testing.T) {
	h := newFakeHost("/usr/bin/sh", "/bin -> usr/bin", "/tmp/a/", "/ws/", "/ws/link -> ../secret", "/secret/key", "/apps/link -> ../secret")
	text := `(version 1)(deny default)
(allow file-read* (subpath "/private/tmp") (regex #"^/private/var/folders/"))
(allow process-exec (literal "/bin/sh"))
(allow file-write* (subpath "/ws"))
(allow file-read* (subpath "/ws/link"))
(allow file-read-xattr (subpath "/apps/link"))
(deny file-write-mode (subpath "/ws/link"))`
	p, err := Parse("here.sb", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	here, err := p.here(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		operation, at string
		want          bool
		line          string
	}{
		{"file-read-data", "/tmp/a", true, "here.sb:2"},
		{"file-read-data", "/var/folders/x", true, "here.sb:2"},
		{"process-exec", "/usr/bin/sh", true, "here.sb:3"},
		{"process-exec", "/bin/sh", true, "here.sb:3"},
		{"file-read-data", "/secret/key", false, "here.sb:1"},  // by a link that the profile lets be written
		{"file-read-xattr", "/secret/key", true, "here.sb:6"},  // by one that it does not
		{"file-write-mode", "/secret/key", false, "here.sb:7"}, // a denial is followed in any case
	} {
		if v := here.Evaluate(test.operation, test.at); v.Allow != test.want || v.At != test.line {
			t.Errorf("%s %s: %v by %s: %s", test.operation, test.at, v.Allow, v.At, v.Why)
		}
	}
	h.make("/private", directory)
	if here, _ := p.here(h); here.Evaluate("file-read-data", "/tmp/a").Allow {
		t.Error("a host that has /private has its own /tmp")
	}
}

// TestPrivateIsTheRootsOwn has filters of every kind that name /private, on a host
// that has none: what they mean of /tmp, /var and /etc.
func TestPrivateIsTheRootsOwn(t *testing.T) {
	h := newFakeHost("/tmp/a/b", "/var/a", "/etc/passwd", "/etcetera/a", "/private.d/a", "/ws/a")
	paths := []string{"/tmp", "/tmp/a", "/tmp/a/b", "/tmp/none", "/var/a", "/var/none", "/etc/passwd", "/etcetera/a", "/private.d/a", "/ws/a"}
	for filter, want := range map[string]string{
		`(subpath "/private")`:            "/tmp /tmp/a /tmp/a/b /tmp/none /var/a /var/none /etc/passwd",
		`(subpath "/private/tmp")`:        "/tmp /tmp/a /tmp/a/b /tmp/none",
		`(literal "/private/tmp/a/b")`:    "/tmp/a/b",
		`(prefix "/private")`:             "/tmp /tmp/a /tmp/a/b /tmp/none /var/a /var/none /etc/passwd /private.d/a",
		`(prefix "/private/")`:            "/tmp /tmp/a /tmp/a/b /tmp/none /var/a /var/none /etc/passwd",
		`(prefix "/private/t")`:           "/tmp /tmp/a /tmp/a/b /tmp/none",
		`(prefix "/private/etc")`:         "/etc/passwd",
		`(regex #"^/private/var/")`:       "/var/a /var/none",
		`(regex #"^/private\/var/")`:      "/var/a /var/none",
		`(regex #"^[/]private/var/")`:     "/var/a /var/none",
		`(regex #"^/(private/)?var/")`:    "/var/a /var/none",
		`(regex #"^(/private)?/var/")`:    "/var/a /var/none",
		`(regex #"^/private/(var|etc)/")`: "/var/a /var/none /etc/passwd",
		`(regex #"/private/etc")`:         "/etc/passwd",
		`(regex #"^/private/etcetera")`:   "",
		`(subpath "/private/etcetera")`:   "",
		`(subpath "/private.d")`:          "/private.d/a",
		`(require-all (subpath "/private") (require-not (subpath "/private/tmp")))`: "/var/a /var/none /etc/passwd",
	} {
		for _, text := range []string{"(version 1)(allow default)(deny file-write* " + filter + ")", "(version 1)(deny default)(allow file-read*)(allow file-write* " + filter + ")"} {
			p, err := Parse("private.sb", text, nil)
			if err != nil {
				t.Fatal(err)
			}
			here, err := p.here(h)
			if err != nil {
				t.Fatal(err)
			}
			policy, rules, err := p.policy(Options{}, h)
			if err != nil {
				t.Fatal(err)
			}
			denies := strings.Contains(text, "(allow default)")
			for _, at := range paths {
				matched := slices.Contains(strings.Fields(want), at)
				if v := here.Evaluate("file-write-data", at); v.Allow != (matched != denies) {
					t.Errorf("%s: %s: %v: %s", text, at, v.Allow, v.Why)
				}
				if can := accessOf(policy, at).write; can && denies && matched && !rules[1].Is(Wider) {
					t.Errorf("%s: %s can be written, and %s", text, at, rules[1])
				}
			}
		}
	}
}

func TestClasses(t *testing.T) {
	h := newFakeHost("/ws/file", "/etc/passwd", "/dev/null", "/proc/")
	for _, test := range []struct {
		rule  string
		class Class
		side  Toward
	}{
		{`(allow file-read* (subpath "/ws"))`, Exact, ""},
		{`(allow file-write* (subpath "/System"))`, Vacuous, ""},
		{`(allow mach-lookup (global-name "a"))`, Vacuous, ""},
		{`(deny iokit-open)`, Vacuous, ""},
		{`(allow sysctl-read)`, Vacuous, ""},
		{`(allow signal)`, Approximate, Narrower},
		{`(allow signal (target same-sandbox))`, Exact, ""},
		{`(allow network-outbound (remote ip "localhost:80"))`, Approximate, Narrower},
		{`(allow network-outbound (literal "/ws/file"))`, Approximate, Narrower},
		{`(deny network*)`, Exact, ""},
		{`(allow file-write-data (subpath "/ws"))`, Approximate, Narrower},
		{`(allow file-read-metadata)`, Approximate, Narrower},
		{`(allow process-exec (with no-sandbox) (literal "/ws/file"))`, Approximate, Narrower},
		{`(deny file-write* (literal "/dev/null"))`, Approximate, Own},
		{`(allow file-write* (subpath "/dev"))`, Approximate, Narrower},
		{`(allow file-write* (literal "/dev/null"))`, Exact, ""},
		{`(allow file-read* (regex #"^/ws/[a-z]+$"))`, Approximate, Narrower},
		{`(deny process-exec-interpreter)`, Approximate, Wider},
		{`(deny file-write-setugid)`, Approximate, Wider},
		{`(deny file-write-acl)`, Approximate, Wider},
		{`(deny file-lock (subpath "/ws"))`, Approximate, Wider},
		{`(deny file-test-existence)`, Approximate, Wider},
		{`(deny dynamic-code-generation)`, Approximate, Own},
		{`(deny file-mknod)`, Vacuous, ""},
		{`(deny file-map-executable)`, Exact, ""},
	} {
		p, err := Parse("class.sb", "(version 1)\n(deny default)\n"+test.rule, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, rules, err := p.policy(Options{}, h)
		if err != nil {
			t.Fatal(err)
		}
		if r := rules[1]; r.Class != test.class || test.side != "" && !r.Is(test.side) {
			t.Errorf("%s", r)
		}
	}
}
