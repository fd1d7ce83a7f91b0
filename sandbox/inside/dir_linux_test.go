package inside

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRelativeNamesBeginInTheDirectory that is set: each act, here and by package os after chdir(2). Errors have the names that were given.
func TestRelativeNamesBeginInTheDirectory(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	t.Chdir(theirs)
	files := servedIn(t, serve, func() string { return ours })
	names := func(list []fs.DirEntry, err error) (text []string, _ error) {
		for _, e := range list {
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			text = append(text, fs.FormatFileInfo(info)[:10]+e.Name())
		}
		return text, err
	}
	for _, test := range []struct {
		name      string
		here, std func() (any, error)
	}{
		{"mkdirall", func() (any, error) { return nil, files.MkdirAll("a/b", 0o700) }, func() (any, error) { return nil, os.MkdirAll("a/b", 0o700) }},
		{"write", func() (any, error) { return nil, files.WriteFile("a/f", []byte("x"), 0o600) }, func() (any, error) { return nil, os.WriteFile("a/f", []byte("x"), 0o600) }},
		{"mkdirall below a file", func() (any, error) { return nil, files.MkdirAll("a/f/c", 0o700) }, func() (any, error) { return nil, os.MkdirAll("a/f/c", 0o700) }},
		{"symlink", func() (any, error) { return nil, files.Symlink("f", "a/l") }, func() (any, error) { return nil, os.Symlink("f", "a/l") }},
		{"replace by a link", func() (any, error) { return nil, files.Replace("a/l", []byte("y")) }, func() (any, error) { return nil, os.WriteFile("a/l", []byte("y"), 0) }},
		{"readlink", func() (any, error) { return files.Readlink("a/l") }, func() (any, error) { return os.Readlink("a/l") }},
		{"rename", func() (any, error) { return nil, files.Rename("a/f", "g") }, func() (any, error) { return nil, os.Rename("a/f", "g") }},
		{"read", func() (any, error) { return files.ReadFile("./a/../g") }, func() (any, error) { return os.ReadFile("./a/../g") }},
		{"read nothing", func() (any, error) { return files.ReadFile("a/none") }, func() (any, error) { return os.ReadFile("a/none") }},
		{"no name", func() (any, error) { return files.ReadFile("") }, func() (any, error) { return os.ReadFile("") }},
		{"readdir", func() (any, error) { return names(files.ReadDir("a")) }, func() (any, error) { return names(os.ReadDir("a")) }},
		{"readdir here", func() (any, error) { return names(files.ReadDir(".")) }, func() (any, error) { return names(os.ReadDir(".")) }},
		{"glob", func() (any, error) { return files.Glob("*/*") }, func() (any, error) { return filepath.Glob("*/*") }},
		{"an absolute name", func() (any, error) { return files.Glob("/pro*") }, func() (any, error) { return filepath.Glob("/pro*") }},
		{"removeall", func() (any, error) { return nil, files.RemoveAll("a") }, func() (any, error) { return nil, os.RemoveAll("a") }},
		{"what is left", func() (any, error) { return names(files.ReadDir(".")) }, func() (any, error) { return names(os.ReadDir(".")) }},
	} {
		got, gotErr := test.here()
		want, wantErr := test.std()
		if g, w := fmt.Sprint(got, gotErr), fmt.Sprint(want, wantErr); g != w {
			t.Errorf("%s: %s, not %s", test.name, g, w)
		}
	}
}

// TestOneActHasOneDirectory: one of several requests is not torn by a directory that is set meanwhile.
func TestOneActHasOneDirectory(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		if err := os.WriteFile(dir+"/f", []byte("of "+dir), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	files := servedIn(t, serve, func() string {
		if asked++; asked == 1 {
			return first
		}
		return second
	})
	if err := files.Replace("f", []byte("replaced")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{first: "replaced", second: "of " + second} {
		if b, _ := os.ReadFile(dir + "/f"); string(b) != want {
			t.Errorf("%q, not %q", b, want)
		}
		if list, _ := os.ReadDir(dir); len(list) != 1 || strings.Contains(list[0].Name(), ".new") {
			t.Errorf("left: %v", list)
		}
	}
}
