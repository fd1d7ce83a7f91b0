package presets

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// scannedTrees are where a preset for a root harness looks for what other users cannot
// read, besides /etc. The rest of the system is made of packages, and what PATH adds
// is toolchains.
var scannedTrees = []string{"/opt", "/usr/local"}

// mostEntries bounds how many entries of all scannedTrees are looked at, those that lie
// higher first.
const mostEntries = 2000

// A rootOnlyScan lists what ordinary users cannot read in some trees. The tool of a harness that
// runs as root has root's uid and could read it.
type rootOnlyScan struct {
	used  []string // directories of PATH, whose programs stay visible
	paths []string
	left  int    // how many entries may still be looked at; below 0: there were more
	end   string // the first directory that was not looked at whole
}

// lastScan remembers the last result of [Builder.rootOnly]: a walk takes milliseconds,
// so its result serves for a minute.
var lastScan struct {
	sync.Mutex
	at   time.Time
	of   string
	walk rootOnlyScan
}

// rootOnly returns what of the system only root can read. A note says where the scan ended early.
func (b *Builder) rootOnly() []string {
	used := b.Canonical(b.search...)
	m := &lastScan
	m.Lock()
	defer m.Unlock()
	if of := strings.Join(used, ":"); m.at.IsZero() || time.Since(m.at) > time.Minute || m.of != of {
		etc := &rootOnlyScan{used: used, left: 1 << 20}
		etc.look("/etc")
		w := rootOnlyScan{used: used, left: mostEntries, paths: etc.paths}
		w.look(scannedTrees...)
		m.walk, m.of, m.at = w, of, time.Now()
	}
	if m.walk.left < 0 {
		b.notes = append(b.notes, policy.Note{At: m.walk.end, Rule: "hide what only root can read", Class: "in part",
			Why: "there is more than a preset looks at: keep secrets out of it, or add them to Files.Hide"})
	}
	return slices.DeleteFunc(slices.Clone(m.walk.paths), func(p string) bool { return pathrule.WithinAny(p, b.own) })
}

// look scans trees breadth-first, so that what is not reached lies deepest.
func (w *rootOnlyScan) look(trees ...string) {
	queue := slices.Clone(trees)
	for i := 0; i < len(queue); i++ {
		dir := queue[i]
		entries := readNames(dir, w.left+1)
		w.left -= len(entries)
		for _, e := range entries {
			w.note(pathrule.Join(dir, e.Name()), e)
		}
		if w.left < 0 {
			w.end = dir
			return
		}
		if !slices.Contains(scannedTrees, dir) && isRuntime(dir, entries) {
			continue
		}
		for _, e := range entries {
			if p := pathrule.Join(dir, e.Name()); e.IsDir() && !slices.Contains(packages, e.Name()) && !slices.Contains(w.paths, p) {
				queue = append(queue, p)
			}
		}
	}
}

// note adds an entry that others cannot read, unless programs of PATH need it: a directory
// that leads to one of PATH or lies in its toolchain, and an executable file there.
func (w *rootOnlyScan) note(p string, e fs.DirEntry) {
	if e.Type()&fs.ModeSymlink != 0 {
		return
	}
	info, err := e.Info()
	if err != nil || info.Mode()&0o004 != 0 && (!e.IsDir() || info.Mode()&0o001 != 0) {
		return
	}
	for _, dir := range w.used {
		root := dir
		if path.Base(dir) == "bin" && !slices.Contains(scannedTrees, path.Dir(dir)) {
			root = path.Dir(dir)
		}
		switch runs := info.Mode()&0o111 != 0; {
		case e.IsDir() && (pathrule.Within(dir, p) || pathrule.Within(p, root)), runs && info.Mode().IsRegular() && pathrule.Within(p, root):
			return
		}
	}
	w.paths = append(w.paths, p)
}

// readNames returns at most n entries of dir, in no order.
func readNames(dir string, n int) []fs.DirEntry {
	d, err := regularfile.OpenDir(dir)
	if err != nil {
		return nil // what root cannot list is closed to the tool, too
	}
	defer d.Close()
	entries, _ := d.ReadDir(n)
	return entries
}

// packages are directories that package managers fill with thousands of public files.
var packages = []string{"node_modules", "site-packages", "dist-packages", "man", "locale", "__pycache__"}

// isRuntime reports whether dir is a language's own tree, of which its own entries
// are looked at and nothing below.
func isRuntime(dir string, entries []fs.DirEntry) bool {
	for _, e := range entries {
		var below []string
		switch e.Name() {
		case "conda-meta", "pyvenv.cfg":
			return true
		case "lib":
			below = []string{"node_modules", "rustlib", "ruby", "jvm.cfg"}
		case "bin":
			below = []string{"python", "python3", "node", "java"}
		case "src":
			below = []string{"runtime/runtime.go"} // Go
		}
		for _, name := range below {
			if _, err := os.Lstat(pathrule.Join(pathrule.Join(dir, e.Name()), name)); err == nil {
				return true
			}
		}
	}
	return false
}
