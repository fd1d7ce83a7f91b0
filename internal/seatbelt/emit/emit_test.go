package emit_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// read parses what was emitted.
func read(t testing.TB, g emit.Grants) *seatbelt.Profile {
	t.Helper()
	e, err := emit.Emit(g)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]string{}
	for _, p := range e.Params {
		params[p.Name] = p.Value
	}
	p, err := seatbelt.Parse(seatbelt.Source{Name: "emitted", Text: e.Profile}, seatbelt.Options{Params: params})
	if err != nil {
		t.Fatalf("%v\n%s", err, e.Profile)
	}
	return p
}

var goldens = map[string]emit.Grants{
	"nothing": {},
	"read-only": {
		Rules: []emit.Rule{{Path: "/usr", Kind: emit.Read}, {Path: "/Users/me/ws", Kind: emit.Read}, {Path: "/Users/me/ws/secret", Kind: emit.Hide}},
		Tag:   "holdfast-1",
	},
	"home": {
		Rules: []emit.Rule{{Path: "/Users/me", Kind: emit.Hide}, {Path: "/Users/me/src/ws", Kind: emit.Write}, {Path: "/Users/me/src/ws/.secret", Kind: emit.Hide}},
		Roots: []string{"/Users/me/src/ws"}, Tag: "holdfast-3",
	},
	"workspace": {
		Rules: []emit.Rule{
			{Path: "/Users/me/ws", Kind: emit.Write}, {Path: "/Users/me/ws/vendor", Kind: emit.Read}, {Path: "/usr", Kind: emit.Read},
			{Path: "/var/folders/x/T/holdfast-1", Kind: emit.Write},
		},
		Roots: []string{"/Users/me/ws"},
		Names: []emit.Name{
			{Path: ".git", Kind: emit.Directory}, {Path: ".git/hooks"}, {Path: ".git/config", Kind: emit.File}, {Path: ".git/modules/**/hooks"}, {Path: ".bashrc"},
			{Path: ".env.*", Kind: emit.Hidden},
		},
		Network: emit.Network{Sockets: true}, PTY: true, Tools: emit.Tools{TLS: true, Git: true, Node: true, Python: true}, Tag: "holdfast-2",
	},
	"proxied": {
		Rules: []emit.Rule{
			{Path: "/tmp/ws", Kind: emit.Write}, {Path: "/Users/me", Kind: emit.Hide}, {Path: "/Users/me/.docker/run/docker.sock", Kind: emit.Socket}, {Path: "/var/run/db.sock", Kind: emit.Socket},
			{Path: "/var/folders/x/T/holdfast-1", Kind: emit.Read}, {Path: "/var/folders/x/T/holdfast-1/tmp", Kind: emit.Write},
		},
		Network: emit.Network{Ports: []int{5432, 49152, 49153}, Sockets: true}, Tag: "holdfast-4",
	},
	"unconfined": {AllFiles: true, AllProcesses: true, Network: emit.Network{All: true, Sockets: true}, PTY: true},
}

func TestProfilesAreTheGoldenOnes(t *testing.T) {
	for name, g := range goldens {
		t.Run(name, func(t *testing.T) {
			read(t, g)
			e, _ := emit.Emit(g)
			if again, _ := emit.Emit(g); again.Profile != e.Profile || strings.Join(again.Args(), "\n") != strings.Join(e.Args(), "\n") {
				t.Error("equal grants give two profiles")
			}
			text := e.Profile + "\n"
			for _, p := range e.Params {
				text += "; -D " + p.Name + "=" + p.Value + "\n"
			}
			file := filepath.Join("testdata", name+".sb")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || string(want) != text {
				t.Errorf("%s differs (run with -update and look): %v\n%s", file, err, text)
			}
		})
	}
}

func TestWhatCannotBeSaidIsRefused(t *testing.T) {
	rule := func(p string) emit.Grants {
		return emit.Grants{Rules: []emit.Rule{{Path: p, Kind: emit.Read, Field: "Files.Read[3]"}}}
	}
	name := func(n string) emit.Grants {
		return emit.Grants{Names: []emit.Name{{Path: n, Field: "Files.HideNames[1]"}}}
	}
	for what, test := range map[string]struct {
		grants emit.Grants
		field  string
	}{
		"a NUL byte":               {rule("/a\x00b"), "Files.Read[3]"},
		"a parent":                 {rule("/a/../b"), "Files.Read[3]"},
		"a parent at the end":      {rule("/a/.."), "Files.Read[3]"},
		"a slash at the end":       {rule("/a/"), "Files.Read[3]"},
		"two slashes":              {rule("/a//b"), "Files.Read[3]"},
		"no UTF-8":                 {rule("/a\xff"), "Files.Read[3]"},
		"a relative path":          {rule("a"), "Files.Read[3]"},
		"nothing":                  {rule(""), "Files.Read[3]"},
		"a rule without a kind":    {emit.Grants{Rules: []emit.Rule{{Path: "/a"}}}, "Rules[0].Path"},
		"a root that is relative":  {emit.Grants{Roots: []string{"a"}}, "Roots[0]"},
		"a name with a NUL byte":   {name("a\x00"), "Files.HideNames[1]"},
		"a name with a parent":     {name("a/../b"), "Files.HideNames[1]"},
		"a name of any one":        {name("*"), "Files.HideNames[1]"},
		"a name that is not UTF-8": {name("\xff"), "Files.HideNames[1]"},
		"port 0":                   {emit.Grants{Network: emit.Network{Ports: []int{0}}}, "Network.Ports[0]"},
		"a tag with a quote":       {emit.Grants{Tag: `a"`}, "Tag"},
		"a tag with a newline":     {emit.Grants{Tag: "a\n"}, "Tag"},
		"rules where all is open":  {emit.Grants{AllFiles: true, Rules: []emit.Rule{{Path: "/a", Kind: emit.Read}}}, "AllFiles"},
	} {
		e, err := emit.Emit(test.grants)
		var refused *emit.Error
		if !errors.As(err, &refused) || refused.Field != test.field || refused.Problem == "" || e.Profile != "" {
			t.Errorf("%s: %v, %q", what, err, e.Profile)
		}
	}
}

// hostile are names that somebody could give a directory in the hope that a
// profile is made of them as text.
var hostile = []string{
	`a"b`, `a\b`, `a\\"b`, `a")(allow default)(deny file-read* (literal "`, "a\n(allow default)\n", "a;b", "a(b)c", "#\"x\"", `a'b`, "a|b", "a b", "a.b*c+[d]{2}^$",
	"(param \"PATH0\")", "-D", "a=b", "\u202e", "\r", "\t", "`id`", "$(id)", "%s", `\"`,
}

// TestNoPathBecomesText: with a hostile name as the workspace, as a hidden place
// and as a protected name, the text is what it is with a harmless one, the rules
// hold where they should, and nowhere else.
func TestNoPathBecomesText(t *testing.T) {
	grants := func(n string) emit.Grants {
		ws := "/Users/me/" + n
		return emit.Grants{
			Rules: []emit.Rule{{Path: ws, Kind: emit.Write}, {Path: ws + "/h" + n, Kind: emit.Hide}},
			Roots: []string{ws}, Names: []emit.Name{{Path: ".x" + strings.ReplaceAll(n, "*", "")}}, Tag: "t",
		}
	}
	plain, err := emit.Emit(grants("plain"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range hostile {
		e, err := emit.Emit(grants(n))
		if err != nil {
			t.Fatalf("%q: %v", n, err)
		}
		if e.Profile != plain.Profile {
			t.Errorf("%q changes the text:\n%s", n, e.Profile)
		}
		p := read(t, grants(n))
		ws := "/Users/me/" + n
		for _, q := range []struct {
			operation, path string
			want            bool
		}{
			{"file-write-data", ws + "/f", true}, {"file-write-data", "/Users/me/f", false}, {"file-write-data", "/Users/me/a/f", false},
			{"file-read-data", ws + "/h" + n, false}, {"file-read-data", ws + "/h" + n + "/f", false}, {"file-read-data", "/etc/passwd", false},
			{"file-write-create", ws + "/d/.x" + strings.ReplaceAll(n, "*", "") + "/f", false}, {"file-write-create", ws + "/d/.y", true},
			{"network-outbound", "/var/run/docker.sock", false},
		} {
			if v := p.Evaluate(seatbelt.Query{Operation: q.operation, Path: q.path, VnodeType: "REGULAR-FILE"}); v.Allow != q.want {
				t.Errorf("%q: %s of %q is allowed %v: %s", n, q.operation, q.path, v.Allow, v.Why)
			}
		}
	}
}

// FuzzNoPathBecomesText: whatever a directory is called, it is refused, or the text
// stays what it is, parses, and grants that directory alone.
func FuzzNoPathBecomesText(f *testing.F) {
	for _, n := range hostile {
		f.Add(n)
	}
	grants := func(n string) emit.Grants {
		return emit.Grants{
			Rules: []emit.Rule{{Path: "/Users/me/" + n, Kind: emit.Write}}, Roots: []string{"/Users/me/" + n}, Names: []emit.Name{{Path: ".git/hooks"}}, Tag: "t",
		}
	}
	plain, err := emit.Emit(grants("plain"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, n string) {
		e, err := emit.Emit(grants(n))
		if err != nil {
			var refused *emit.Error
			if !errors.As(err, &refused) || e.Profile != "" {
				t.Fatalf("%q: %v", n, err)
			}
			return
		}
		if e.Profile != plain.Profile && !strings.Contains(n, "/") && n != ".git" { // a root named .git begins a protected name
			t.Fatalf("%q changes the text:\n%s", n, e.Profile)
		}
		if strings.Contains(e.Profile, n) && !strings.Contains(plain.Profile, n) {
			t.Fatalf("%q stands in the text", n)
		}
		p := read(t, grants(n))
		for path, want := range map[string]bool{"/Users/me/" + n + "/f": true, "/Users/you/f": false, "/Users/me/" + n + "/.git/hooks/f": false} {
			if v := p.Evaluate(seatbelt.Query{Operation: "file-write-data", Path: path, VnodeType: "REGULAR-FILE"}); v.Allow != want {
				t.Fatalf("%q: writing %q is allowed %v: %s", n, path, v.Allow, v.Why)
			}
		}
	})
}

// TestNamesAreNotAskedPastTheProxies: the resolver's socket is closed to a bounded
// network though the tree around it is shown, unless it is granted itself.
func TestNamesAreNotAskedPastTheProxies(t *testing.T) {
	root := []emit.Rule{{Path: "/", Kind: emit.Read}}
	for what, test := range map[string]struct {
		grants emit.Grants
		want   bool
	}{
		"a shown root":         {emit.Grants{Rules: root, Network: emit.Network{Sockets: true, Ports: []int{1}}}, false},
		"a writable directory": {emit.Grants{Rules: []emit.Rule{{Path: "/var/run", Kind: emit.Write}}, Network: emit.Network{Sockets: true}}, false},
		"all files":            {emit.Grants{AllFiles: true, Network: emit.Network{Sockets: true}}, false},
		"the socket itself":    {emit.Grants{Rules: append(root, emit.Rule{Path: "/var/run/mDNSResponder", Kind: emit.Socket}), Network: emit.Network{Sockets: true}}, true},
		"the whole network":    {emit.Grants{Rules: root, Network: emit.Network{Sockets: true, All: true}}, true},
	} {
		p := read(t, test.grants)
		for _, dir := range []string{"/private/var/run", "/var/run"} {
			q := seatbelt.Query{Operation: "network-outbound", Protocol: "unix", Path: dir + "/mDNSResponder"}
			if v := p.Evaluate(q); v.Allow != test.want {
				t.Errorf("%s: %s is allowed %t: %s", what, q.Path, v.Allow, v.Why)
			}
			if q.Path = dir + "/other"; what != "the whole network" && !p.Evaluate(q).Allow {
				t.Errorf("%s: %s is refused", what, q.Path)
			}
		}
	}
}
