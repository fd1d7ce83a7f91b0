package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

func denied(field, value string, change ...func(v *Violation)) Violation {
	v := Violation{Bound: BoundFiles, Operation: "open for reading", Path: value, Why: "the policy does not show this path", Remedy: "add it", Claimed: "cat \x1b[2Jx", Widening: Widening{Field: field, Value: value}}
	for _, c := range change {
		c(&v)
	}
	return v
}

func tree(v *Violation) { v.Widening.Tree = true }
func look(v *Violation) { v.Widening.Look = true }

// TestSuggest: "+" lines are what is added, the others what is not.
func TestSuggest(t *testing.T) {
	many := func(dir string, n int, change ...func(v *Violation)) (list []Violation) {
		for i := range n {
			list = append(list, denied("Files.Read", fmt.Sprintf("%s/f%d", dir, i), change...))
		}
		return list
	}
	for words, test := range map[string]struct {
		denied []Violation
		add    string
		not    string // a part of each line
	}{
		"nothing":                     {},
		"a file, twice":               {[]Violation{denied("Files.Read", "/srv/a"), denied("Files.Read", "/srv/a", look)}, "/srv/a", ""},
		"what a tree covers":          {[]Violation{denied("Files.Read", "/srv/d/a"), denied("Files.Read", "/srv/d", tree), denied("Files.Read", "/srv/da")}, "/srv/d /srv/da", ""},
		"what writing covers":         {[]Violation{denied("Files.Read", "/srv/d/a"), denied("Files.Write", "/srv/d", tree)}, "/srv/d", ""},
		"eight files":                 {many("/srv/d", 8), "/srv/d/f0 /srv/d/f1 /srv/d/f2 /srv/d/f3 /srv/d/f4 /srv/d/f5 /srv/d/f6 /srv/d/f7", ""},
		"nine files":                  {many("/srv/d", 9), "/srv/d", ""},
		"nine beside secrets":         {many("/srv/d", 9, func(v *Violation) { v.Widening.NoTree = true })[:1], "/srv/d/f0", ""},
		"a look at a directory":       {[]Violation{denied("Files.Read", "/srv/d", look, tree)}, "", "only its metadata"},
		"a look above what is added":  {[]Violation{denied("Files.Read", "/srv/d", look, tree), denied("Files.Read", "/srv/d/a")}, "/srv/d/a", ""},
		"a secret":                    {[]Violation{denied("Files.Read", "/home/u/.ssh/id", func(v *Violation) { v.Widening.Secret = "secrets lie in .ssh" })}, "", "secrets lie in .ssh"},
		"a protected name":            {[]Violation{denied("", "/srv/.bashrc", func(v *Violation) { v.Why = "programs obey it" })}, "", "programs obey it"},
		"a directory of hooks":        {[]Violation{denied("Files.Write", "/srv/r/.git/hooks", tree)}, "", "protected name"},
		"a file in a new .vscode":     {[]Violation{denied("Files.Write", "/srv/r", tree, func(v *Violation) { v.Path = "/srv/r/.vscode" })}, "", "protected name"},
		"a program of the system":     {[]Violation{denied("Files.Write", "/usr/bin/ls")}, "", "run or obey"},
		"a directory of the root":     {[]Violation{denied("Files.Read", "/data", tree)}, "", "whole directory of the root"},
		"a host":                      {[]Violation{{Protocol: "https", Host: "example.com", Port: 443, Widening: Widening{Field: "Network.Hosts", Value: "example.com:443"}}}, "example.com:443", ""},
		"a host that Deny names":      {[]Violation{{Protocol: "https", Host: "example.com", Port: 443, Why: "the entry", Remedy: "remove it"}}, "", "example.com:443"},
		"a name that could be escape": {[]Violation{denied("Files.Read", "/srv/\x1b[2J\n+   \"/etc\"")}, "/srv/\x1b[2J\n+   \"/etc\"", ""},
	} {
		s := Suggest(test.denied)
		var add []string
		for _, w := range s.Add {
			add = append(add, w.Value)
		}
		text := s.String()
		if got := strings.Join(add, " "); got != test.add || (test.not == "") != (len(s.Not) == 0) || !strings.Contains(text, test.not) {
			t.Errorf("%s: %q\n%s", words, got, text)
		}
		if strings.ContainsRune(text, 0x1b) || strings.Count(text, "\n+ ") != len(add) {
			t.Errorf("%s: %q", words, text)
		}
		p := s.Apply(Policy{Files: Files{Read: []string{"/srv/a"}}})
		if n := len(p.Files.Read) + len(p.Files.Write) + len(p.Network.Hosts); n > len(add)+1 || strings.Count(strings.Join(p.Files.Read, " ")+" ", "/srv/a ") != 1 {
			t.Errorf("%s: applied: %+v", words, p)
		}
	}
}

// TestWatchGoesWithWhatItIsFor: what it would contradict, or weaken, is an error.
func TestWatchGoesWithWhatItIsFor(t *testing.T) {
	for words, p := range map[string]Policy{
		"open files": {Open: []Bound{BoundFiles}},
		"programs":   {Programs: make([]seccomp.Program, 1)},
		"a root":     {Root: &rootfs.Layout{}},
	} {
		p.Files.Watch = true
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "Files.Watch") {
			t.Errorf("%s: %v", words, err)
		}
	}
	if err := (Policy{Files: Files{Watch: true}}).Validate(); err != nil {
		t.Error(err)
	}
}
