package gitobeyed

import (
	"slices"
	"testing"
)

func TestWordsOfACommand(t *testing.T) {
	for _, c := range []struct {
		command string
		want    []string // among others
		not     string
	}{
		{`./scripts/clean %f`, []string{"./scripts/clean"}, "%f"},
		{`"./my scripts/clean" a`, []string{"./my scripts/clean", "a"}, ""},
		{`./my\ scripts/clean`, []string{"./my scripts/clean"}, ""},
		{`sh -c 'exec "tools/x" "$@"' -`, []string{"sh", "tools/x"}, "-c"},
		{`X=1 LIB=./lib.so a/b|c/d;e/f&&(g/h)`, []string{"./lib.so", "a/b", "c/d", "e/f", "g/h"}, ""},
		{"`git rev-parse --show-toplevel`/a/b \"$(pwd)/c\" $PWD/d", []string{"/a/b", "/c", "$PWD/d"}, ""},
		{`a --config=./x`, []string{"./x"}, "--config"},
		{`f() { ./g "$1"; }; f`, []string{"./g", "f"}, "{"},
		{`git log origin/main..HEAD https://example.org/x a/*.c ../b`, []string{"git", "../b"}, "origin/main..HEAD"},
		{`"unclosed/quote`, []string{"unclosed/quote"}, ""},
	} {
		got := words(c.command)
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", c.command, got, w)
			}
		}
		if c.not != "" && slices.Contains(got, c.not) {
			t.Errorf("%s: %q has %q", c.command, got, c.not)
		}
	}
}

// A word without a slash is found by PATH, which may have a directory of the work tree's.
func TestACommandFoundByARelativePATH(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", "/nowhere")
	t.Setenv("PATH", "/usr/bin:tools/bin")
	write(t, dir+"/.git/HEAD", "x", false)
	write(t, dir+"/.git/config", "[core]\npager = page\n", false)
	if got := In(dir, shown).Paths; !slices.Contains(got, dir+"/tools/bin/page") || slices.Contains(got, dir+"/page") {
		t.Errorf("%q", got)
	}
}
