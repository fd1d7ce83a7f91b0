//go:build unix

package presets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"golang.org/x/sys/unix"
)

// closedIn makes a tree with these modes and walks its directories "etc" and "opt".
func closedIn(t *testing.T, used []string, modes map[string]fs.FileMode, names ...string) (*rootOnlyScan, string) {
	t.Helper()
	root := fixture.Tree(t, append([]string{"etc/", "opt/"}, names...)...)
	for name, mode := range modes {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	w := &rootOnlyScan{left: mostEntries}
	for _, dir := range used {
		w.used = append(w.used, root+"/"+dir)
	}
	w.look(root+"/etc", root+"/opt")
	return w, root
}

func TestClosedIsWhatOthersCannotRead(t *testing.T) {
	for _, tt := range []struct {
		name  string
		used  []string
		modes map[string]fs.FileMode
		names []string
		want  string
	}{
		{"files, directories as a whole, no links", nil, map[string]fs.FileMode{"etc/closed": 0o640, "opt/shut": 0o750},
			[]string{"etc/open", "etc/closed", "opt/shut/f", "opt/link -> ../etc/closed"}, "etc/closed opt/shut"},
		{"an application's secrets", nil, map[string]fs.FileMode{"opt/app/.env": 0o600, "opt/app/config/db.pass": 0o400},
			[]string{"opt/app/.env", "opt/app/VERSION", "opt/app/bin/run", "opt/app/config/db.pass", "opt/app/config/open"}, "opt/app/.env opt/app/config/db.pass"},
		{"a directory that others list and cannot enter", nil, map[string]fs.FileMode{"opt/odd": 0o744}, []string{"opt/odd/f"}, "opt/odd"},
		{"one that they enter and cannot list", nil, map[string]fs.FileMode{"opt/odd": 0o711}, []string{"opt/odd/f"}, "opt/odd"},
		{"root's own programs run", []string{"opt/tool/bin"}, map[string]fs.FileMode{"opt/tool": 0o700, "opt/tool/lib": 0o700, "opt/tool/bin/x": 0o700, "opt/tool/key": 0o600},
			[]string{"opt/tool/bin/x", "opt/tool/lib/f", "opt/tool/key"}, "opt/tool/key"},
		{"what is closed in a toolchain that others enter", []string{"opt/app/bin"}, map[string]fs.FileMode{"opt/app/secrets": 0o700, "opt/app/bin/x": 0o700},
			[]string{"opt/app/bin/x", "opt/app/secrets/key"}, "opt/app/secrets"},
		{"a toolchain around a tree of the system", []string{"bin", "opt/bin"}, map[string]fs.FileMode{"opt/x": 0o700, "opt/run": 0o700, "opt/bin/x": 0o700},
			[]string{"opt/x/key", "opt/run", "opt/bin/x"}, "opt/run opt/x"},
		{"a runtime's packages are not looked at, its own entries are", nil, map[string]fs.FileMode{"opt/py/lib/x/f": 0o600, "opt/py/.env": 0o600},
			[]string{"opt/py/pyvenv.cfg", "opt/py/lib/x/f", "opt/py/.env"}, "opt/py/.env"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, root := closedIn(t, tt.used, tt.modes, tt.names...)
			if got := below(root, w.paths); got != tt.want || w.left < 0 {
				t.Errorf("got %s, want %s (left %d)", got, tt.want, w.left)
			}
		})
	}
}

// TestClosedIsLookedAtAnew: the entries of a directory are kept, and their modes are not.
func TestClosedIsLookedAtAnew(t *testing.T) {
	w, root := closedIn(t, nil, nil, "opt/app/a", "opt/app/b")
	if got := below(root, w.paths); got != "" {
		t.Fatalf("got %s", got)
	}
	known := map[string]listing{}
	for _, dir := range []string{"/etc", "/opt", "/opt/app"} { // as they are once their changes are some seconds old
		var st unix.Stat_t
		entries, err := os.ReadDir(root + dir)
		if err = errors.Join(err, unix.Stat(root+dir, &st)); err != nil {
			t.Fatal(err)
		}
		known[root+dir] = listing{uint64(st.Dev), st.Ino, st.Ctim, entries}
	}
	if err := os.Chmod(root+"/opt/app/a", 0o600); err != nil {
		t.Fatal(err)
	}
	w = &rootOnlyScan{left: mostEntries, known: known}
	w.look(root+"/etc", root+"/opt")
	if got := below(root, w.paths); got != "opt/app/a" {
		t.Errorf("got %s", got)
	}
}

// TestClosedIsBoundedAndSaysSo: what lies higher is found all the same.
func TestClosedIsBoundedAndSaysSo(t *testing.T) {
	names := []string{"opt/app/secret", "etc/a/b/c/d"}
	for i := range mostEntries {
		names = append(names, fmt.Sprintf("etc/a/b/%d", i))
	}
	w, root := closedIn(t, nil, map[string]fs.FileMode{"opt/app/secret": 0o600}, names...)
	if got := below(root, w.paths); got != "opt/app/secret" {
		t.Errorf("got %s", got)
	}
	if w.left >= 0 || w.end == "" {
		t.Errorf("left %d, end %q", w.left, w.end)
	}
}
