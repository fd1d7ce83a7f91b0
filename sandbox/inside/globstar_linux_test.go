package inside

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGlobKnowsAnyNumberOfDirectories: "**", and it follows no link, round and round or out of the tree.
func TestGlobKnowsAnyNumberOfDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.go", "b.txt", "x/a.go", "x/y/a.go", "x/y/z/c.go", ".hidden/d.go", "x/.git/HEAD"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("..", filepath.Join(dir, "x", "round")), os.Symlink(t.TempDir(), filepath.Join(dir, "out"))); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		"**/*.go":        ".hidden/d.go a.go x/a.go x/y/a.go x/y/z/c.go",
		"**/a.go":        "a.go x/a.go x/y/a.go",
		"x/**/*.go":      "x/a.go x/y/a.go x/y/z/c.go",
		"x/**/a.go":      "x/a.go x/y/a.go",
		"x/y/**":         "x/y/a.go x/y/z x/y/z/c.go",
		"**/y/**":        "x/y x/y/a.go x/y/z x/y/z/c.go",
		"**/**/?.go":     ".hidden/d.go a.go x/a.go x/y/a.go x/y/z/c.go",
		"*/y/**/c.go":    "x/y/z/c.go",
		"**/none":        "",
		"none/**":        "",
		"a.go/**":        "",
		"x/**/[a-b]*.go": "x/a.go x/y/a.go",
	} {
		inDir, err := servedIn(t, serve, func() string { return dir }).Glob(pattern)
		if got := strings.Join(inDir, " "); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
		absolute, err := served(t, serve).Glob(dir + "/" + pattern)
		if got := strings.ReplaceAll(strings.Join(absolute, " "), dir+"/", ""); got != want || err != nil {
			t.Errorf("%s, absolute: %q, %v, want %q", pattern, got, err, want)
		}
	}
	files := servedIn(t, serve, func() string { return dir })
	if _, err := files.Glob("**/["); !errors.Is(err, path.ErrBadPattern) {
		t.Errorf("a bad pattern: %v", err)
	}
	deepest := filepath.Join(dir, strings.Repeat("a/", 60))
	if err := os.MkdirAll(deepest, 0o755); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if list, err := files.Glob(strings.Repeat("**/a/", 30) + "b"); len(list) > 0 || err != nil || time.Since(begun) > time.Minute {
		t.Errorf("a pattern that matches in many ways: %q, %v, after %v", list, err, time.Since(begun))
	}
	if list, err := files.Glob("**"); err != nil || !slices.Contains(list, "x/y/z/c.go") || slices.Contains(list, "x/round/a.go") {
		t.Errorf("all of it: %q, %v", list, err)
	}
}
