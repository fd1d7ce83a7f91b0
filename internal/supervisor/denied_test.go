package supervisor

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/protected"
)

// TestCauseOf: the harness finds the rule by which the supervisor has refused a path.
func TestCauseOf(t *testing.T) {
	r := Rules{
		Roots: []Root{{Path: "/w", Fold: true}}, Names: append(protected.Patterns(), protected.Pattern{Path: "house/*/rules*"}, protected.Pattern{Path: "a/**/b"}), Hidden: []string{".env", ".env.*"},
		Paths: []protected.Pattern{{Path: "/w/held"}, {Path: "/w/secret", Kind: protected.Unread}, {Path: "/w/held/free", Kind: protected.Free}},
	}
	blob, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Cause{
		"/w/d/.bashrc":                       {Rule: ".bashrc", Kind: CauseName, Why: "bash, where the directory is a HOME"},
		"/w/.VSCODE/tasks.json":              {Rule: ".vscode", Kind: CauseName, Why: "Visual Studio Code and its kin: tasks, paths of programs"},
		"/w/x.code-workspace":                {Rule: "*.code-workspace", Kind: CauseName, Why: "Visual Studio Code: as .vscode"},
		"/w/lefthook.toml":                   {Rule: "lefthook.*", Kind: CauseName, Why: "lefthook: what the hooks in .git/hooks run", Build: true},
		"/w/house/x/rules.txt":               {Rule: "house/*/rules*", Kind: CauseName},
		"/w/a/x/y/b":                         {Rule: "a/**/b", Kind: CauseName},
		"/w/.lsp":                            {Rule: ".lsp/config.edn", Kind: CauseAbove, Why: "clojure-lsp: commands that tell the classpath"},
		"/w/d/.env.local":                    {Rule: ".env.*", Kind: CauseHiddenName},
		"/w/secret/key":                      {Rule: "/w/secret", Kind: CauseHiddenPath},
		"/w/held/x":                          {Rule: "/w/held", Kind: CausePath},
		"/w/.git/hooks/pre-commit":           {Rule: "hooks/**", Kind: CauseGit, Why: "git runs them"},
		"/w/.git/odd":                        {Kind: CauseGit},
		"/w/.git/worktrees/a/hooks/pre-push": {Rule: "hooks/**", Kind: CauseGit, Why: "git runs them"},
		"/w/plain":                           {},
	} {
		m := &matcher{rules: blob}
		m.n = uint(copy(m.path[:], path))
		m.judgeByName()
		d := Denial{Paths: [2]string{path}, hit: [2]uint32{m.hit}}
		if i := strings.Index(path, "/.git/"); i >= 0 {
			d.git[0] = i + len("/.git/")
		}
		if want.Kind == CauseName || want.Kind == CauseAbove {
			want.Root = "/w"
		}
		if got := CauseOf(blob, d); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
		d.Side, d.Paths, d.hit, d.git = 1, [2]string{"/other", path}, [2]uint32{0, m.hit}, [2]int{0, d.git[0]}
		if got := CauseOf(blob, d); got != want {
			t.Errorf("%s as the second path: %+v, want %+v", path, got, want)
		}
	}
	for _, d := range []Denial{{}, {Paths: [2]string{"no path"}, hit: [2]uint32{hitWhole}}, {Paths: [2]string{strings.Repeat("/x", 4000)}, hit: [2]uint32{^uint32(0)}, git: [2]int{1 << 15}}} {
		if got := CauseOf(blob, d); got.Rule != "" {
			t.Errorf("%.20q: %+v", d.Paths[0], got)
		}
	}
}

// FuzzReadDenials: whatever the memory holds, what is read of it is bounded, and the harness lives.
func FuzzReadDenials(f *testing.F) {
	r := Rules{Roots: []Root{{Path: "/w"}}, Names: protected.Patterns()}
	blob, err := r.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{1}, uint32(1), uint16(5))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), uint32(1<<31), uint16(0xffff))
	f.Add([]byte("/w/.bashrc\x00\x01"), uint32(DenialRoom+1), uint16(1024))
	f.Fuzz(func(t *testing.T, noise []byte, used uint32, size uint16) {
		table := new(denialTable)
		b := unsafe.Slice((*byte)(unsafe.Pointer(table)), DenialBytes)
		for i := range b {
			if len(noise) > 0 {
				b[i] = noise[i%len(noise)]
			}
		}
		table.used = used
		for i := range table.record {
			d := &table.record[i]
			d.size, d.deed, d.reason = [2]uint16{size, size}, d.deed%uint8(deedCount), d.reason%uint8(reasonCount)
			if i%32 == 0 {
				table.hash[i] = d.sum()
			}
		}
		list, _ := ReadDenials(b)
		if len(list) > DenialRoom {
			t.Fatalf("%d records", len(list))
		}
		for _, d := range list {
			if len(d.Paths[0]) > DenialPathRoom || len(d.Command) > commandRoom || d.Side > 1 || d.Deed >= deedCount {
				t.Fatalf("%+v", d)
			}
			CauseOf(blob, d)
		}
		if list, beyond := ReadDenials(b[:len(b)-1]); list != nil || beyond != 0 {
			t.Fatal("a table that is cut short was read")
		}
	})
}

// BenchmarkCauseOf is what one record costs the harness at most: a path as deep as is looked at.
func BenchmarkCauseOf(b *testing.B) {
	r := Rules{Roots: []Root{{Path: "/w", Fold: true}}, Names: protected.Patterns()}
	blob, err := r.Encode()
	if err != nil {
		b.Fatal(err)
	}
	for _, dir := range []string{"/a", "/.", "/~"} {
		d := Denial{Paths: [2]string{"/w" + strings.Repeat(dir, mostComponents-2) + "/.yarnrc"}, hit: [2]uint32{hitWhole}}
		b.Run(dir[1:], func(b *testing.B) {
			for b.Loop() {
				if CauseOf(blob, d).Rule == "" {
					b.Fatal("no rule")
				}
			}
		})
	}
}
