//go:build unix

package presets

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
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
	trees []string
	paths []string
	known map[string]listing // of an earlier scan
	read  map[string]listing // of this one
	left  int                // how many entries may still be looked at; below 0: there were more
	end   string             // the first directory that was not looked at whole
}

// A listing is what a directory contained when it was read. As long as its inode and its status change time are the
// same, it does: adding, removing and renaming entries changes that time (inode(7)).
type listing struct {
	device, inode uint64
	changed       unix.Timespec
	entries       []fs.DirEntry
}

// settled is how old a change has to be, so that another cannot have the same time: file systems count in ticks of at
// most two seconds.
const settled = 3 * time.Second

// lastListings are of the last scan. The modes of entries are looked at each time: a directory has no trace of their
// changes.
var lastListings struct {
	sync.Mutex
	of map[string]listing
}

// rootOnly returns what of the system only root can read. A note says where the scan ended early.
func (b *Builder) rootOnly() []string {
	used := b.Canonical(b.search...)
	m := &lastListings
	m.Lock()
	defer m.Unlock()
	etc := &rootOnlyScan{used: used, left: 1 << 20, known: m.of, read: map[string]listing{}}
	etc.look("/etc")
	w := &rootOnlyScan{used: used, left: mostEntries, paths: etc.paths, known: m.of, read: etc.read}
	w.look(scannedTrees...)
	m.of = w.read
	if w.left < 0 {
		b.notes = append(b.notes, policy.Note{At: w.end, Rule: "hide what only root can read", Class: "in part",
			Why: "there is more than a preset looks at: keep secrets out of it, or add them to Files.Hide"})
	}
	return slices.DeleteFunc(w.paths, func(p string) bool { return pathrule.WithinAny(p, b.own) })
}

// look scans trees breadth-first, so that what is not reached lies deepest.
func (w *rootOnlyScan) look(trees ...string) {
	w.trees = trees
	queue := slices.Clone(trees)
	for i := 0; i < len(queue); i++ {
		dir := queue[i]
		entries := w.list(dir)
		w.left -= len(entries)
		var below []string
		for _, e := range entries {
			p := pathrule.Join(dir, e.Name())
			var st unix.Stat_t
			if e.Type()&fs.ModeSymlink != 0 || unix.Lstat(p, &st) != nil {
				continue
			}
			isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
			runs := st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0
			closed := st.Mode&0o004 == 0 || isDir && st.Mode&0o001 == 0
			if closed && !w.needed(p, isDir, runs) {
				w.paths = append(w.paths, p)
			} else if isDir && !slices.Contains(packages, e.Name()) {
				below = append(below, p)
			}
		}
		if w.left < 0 {
			w.end = dir
			return
		}
		if slices.Contains(scannedTrees, dir) || !isRuntime(dir, entries) {
			queue = append(queue, below...)
		}
	}
}

// list returns the entries of a directory, in no order, of which it reads one more than may be looked at. What root
// cannot list is closed to the tool, too.
func (w *rootOnlyScan) list(dir string) []fs.DirEntry {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return nil
	}
	now := listing{device: uint64(st.Dev), inode: st.Ino, changed: st.Ctim}
	known := w.known[dir]
	if known.device == now.device && known.inode == now.inode && known.changed == now.changed {
		now = known
	} else if d, err := regularfile.OpenDir(dir); err == nil {
		now.entries, _ = d.ReadDir(w.left + 1) // what could be read counts
		d.Close()
	}
	if w.read != nil && len(now.entries) <= w.left && time.Since(time.Unix(st.Ctim.Unix())) > settled {
		w.read[dir] = now
	}
	return now.entries[:min(len(now.entries), w.left+1)]
}

// needed reports whether programs of PATH need what others cannot read: a directory that leads to one of PATH, and in
// a toolchain of root's own a program. A toolchain is what a directory named bin lies in, unless that contains a tree
// that is scanned. Where others may enter it, it is not root's own, and a directory in it that is closed to them is so
// for a reason.
func (w *rootOnlyScan) needed(p string, isDir, runs bool) bool {
	for _, dir := range w.used {
		root, around := dir, path.Dir(dir)
		system := func(tree string) bool { return pathrule.Within(tree, around) }
		if path.Base(dir) == "bin" && !slices.ContainsFunc(w.trees, system) {
			root = around
		}
		if isDir && pathrule.Within(dir, p) || runs && pathrule.Within(p, root) {
			return true
		}
		if isDir && pathrule.Within(p, root) {
			if info, err := os.Lstat(root); err == nil && info.Mode().Perm()&0o005 != 0o005 {
				return true
			}
		}
	}
	return false
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
