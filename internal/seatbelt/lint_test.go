package seatbelt_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

func TestAProfileIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       seatbelt.WarningKind
		want       string
	}{
		{"a wildcard behind the concrete operation", `(allow file-read-data (subpath "/w"))` + "\n" + `(deny file-read* (literal "/w/.env"))`,
			seatbelt.Precedence, "(deny file-read* ..) does not override <input string>:2, which names file-read-data"},
		{"an unfiltered rule behind a filtered one", `(allow file-read* (subpath "/w")) (deny file-read*)`, seatbelt.Precedence, "has a filter"},
		{"a default that comes last", `(allow process-fork) (deny default)`, seatbelt.Precedence, "names process-fork"},
		{"a grandparent", `(deny mach-priv-task-port) (allow mach*)`, seatbelt.Precedence, "names mach-priv-task-port"},
		{"/tmp", `(allow file-write* (subpath "/tmp/x"))`, seatbelt.Dead, "/tmp is a symbolic link"},
		{"/var itself as a tree", `(allow file-write* (subpath "/var"))`, seatbelt.Dead, "/var is a symbolic link"},
		{"a slash at the end", `(allow file-write* (subpath "/w/"))`, seatbelt.Dead, "ends in a slash"},
		{"a relative path", `(allow file-write* (subpath "."))`, seatbelt.Dead, "not absolute"},
		{"an empty path", `(allow file-write* (subpath ""))`, seatbelt.Dead, "not absolute"},
		{"dots", `(allow file-write* (literal "/w/../x"))`, seatbelt.Dead, "not a clean path"},
		{"the local end of an outgoing connection", `(allow network-outbound (local ip "localhost:*"))`, seatbelt.Wide, "anywhere"},
		{"no sandbox", `(allow process-exec (literal "/bin/ps") (with no-sandbox))`, seatbelt.Wide, "out of the sandbox"},
		{"several values", `(define x "a" "b")`, seatbelt.Dead, "first value only"},
	} {
		p := mustParse(t, c.text)
		if len(p.Warnings) == 0 || p.Warnings[0].Kind != c.kind || !strings.Contains(p.Warnings[0].Message, c.want) {
			t.Errorf("%s: %v", c.name, p.Warnings)
		}
	}
}

func TestAnOrdinaryProfileIsNotWarnedOf(t *testing.T) {
	for _, text := range []string{
		`(deny default) (allow file-read*) (allow file-write* (subpath "/w")) (deny file-write* (subpath "/w/.git"))`,
		`(allow default) (deny file-write*) (allow file-write* (subpath "/private/tmp"))`,
		`(allow file-write-create (subpath "/w")) (deny file-write* file-write-create (subpath "/w/x"))`,
		`(allow file-read-data (subpath "/a")) (deny file-read* (subpath "/b"))`,
		`(allow file-read-metadata (literal "/tmp") (literal "/var") (path "/etc"))`,
		`(allow file-write* (prefix "/private/tmp/"))`,
		`(allow network-outbound (remote ip "localhost:*")) (allow network-bind (local ip "localhost:*"))`,
	} {
		if p := mustParse(t, text); len(p.Warnings) != 0 {
			t.Errorf("%s: %v", text, p.Warnings)
		}
	}
}

func TestAStandInIsNamed(t *testing.T) {
	p := mustParse(t, `(import "/System/Library/Sandbox/Profiles/bsd.sb")`)
	var said []string
	for _, w := range p.Warnings {
		if w.Kind == seatbelt.StandIn {
			said = append(said, w.Message)
		}
	}
	if len(said) != 2 { // bsd.sb, and system.sb that it imports
		t.Errorf("%q", said)
	}
}

func TestOurOwnProfilesAreNotWarnedOf(t *testing.T) {
	for _, name := range seatbelt.Names() {
		src, ok := seatbelt.Named(name)
		if !ok {
			t.Fatal(name)
		}
		if p, err := seatbelt.Parse(src, seatbelt.Options{}); err != nil || len(p.Warnings) != 0 {
			t.Errorf("%s: %v %v", name, err, p.Warnings)
		}
	}
	for _, name := range []string{"system.sb", "bsd.sb"} {
		src, _ := seatbelt.Import(name)
		if p, err := seatbelt.Parse(src, seatbelt.Options{Import: seatbelt.Import}); err != nil || len(p.Warnings) != 0 {
			t.Errorf("%s: %v %v", name, err, p.Warnings)
		}
	}
	if _, ok := seatbelt.Named("system"); ok {
		t.Error("system is no named profile")
	}
	if _, ok := seatbelt.Import("no-write.sb"); ok {
		t.Error("no-write.sb is no import")
	}
}
