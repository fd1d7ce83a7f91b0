package gitobeyed

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// repository makes what has the shape of a git directory.
func repository(t *testing.T, git string) {
	t.Helper()
	for _, dir := range []string{git + "/objects", git + "/refs"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(git+"/HEAD", []byte("ref: refs/heads/main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAboveFindsTheRepositoryOfASubdirectory(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repository(t, base+"/r/.git")
	repository(t, base+"/bare")
	for _, dir := range []string{"/r/a/b", "/bare/x", "/none"} {
		if err := os.MkdirAll(base+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, dir, top, repository string }{
		{"a sub-directory", "/r/a", "/r", "/r/.git"}, {"two levels down", "/r/a/b", "/r", "/r/.git"}, {"the top itself", "/r", "", ""},
		{"in a bare repository", "/bare/x", "", ""}, {"a bare repository", "/bare", "", ""}, {"none around", "/none", "", ""},
	} {
		top, l, problem := Above(base + c.dir)
		if strings.TrimPrefix(top, base) != c.top || strings.TrimPrefix(l.Repository, base) != c.repository || problem != "" {
			t.Errorf("%s: %q, %+v, %q", c.name, top, l, problem)
		}
	}
}

// A repository that another user has made around a directory is that user's trap: its hooks and configuration would count.
func TestAboveTrustsNoOtherUser(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS == "windows" {
		t.Skip("needs root, to give files to another user")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		owned []string
		fine  bool
	}{
		{"the work tree", []string{"/r"}, false}, {"the repository", []string{"/r/.git"}, false}, {"both", []string{"/r", "/r/.git"}, false},
		{"the directory's owner", []string{"/r", "/r/.git", "/r/a"}, true}, {"no file", nil, true},
	} {
		dir := base + "/" + strings.ReplaceAll(c.name, " ", "-")
		repository(t, dir+"/r/.git")
		if err := os.Mkdir(dir+"/r/a", 0o755); err != nil {
			t.Fatal(err)
		}
		for _, p := range c.owned {
			if err := os.Lchown(dir+p, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, problem := Above(dir + "/r/a"); (problem == "") != c.fine {
			t.Errorf("another user has %s: %q", c.name, problem)
		}
	}
}
