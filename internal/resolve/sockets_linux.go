package resolve

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// HostSockets returns the bound sockets that lie in directories which the tree shows to
// read, and that it does not name: connect(2) asks for no mount, and before ABI 9 Landlock
// does not refuse it. The list is /proc/net/unix (proc_net(5)), which has the sockets of
// this network namespace by the paths at which they were bound: one bound later, by a
// relative path, or in a container, is not found.
//
// In directories that the tool can write sockets stay: the tool's own are there, too, and
// those of the programs that it works with.
func HostSockets(l Tree) []string {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	var found []string
	dirs := map[string]string{} // by the directory as it was bound
	for _, p := range boundPaths(string(text)) {
		dir, seen := dirs[path.Dir(p)]
		if !seen {
			dir, _ = filepath.EvalSymlinks(path.Dir(p))
			dirs[path.Dir(p)] = dir
		}
		if dir == "" || !showsToRead(l, pathrule.Join(dir, path.Base(p))) {
			continue
		}
		p = pathrule.Join(dir, path.Base(p))
		if info, err := os.Lstat(p); err == nil && info.Mode().Type() == fs.ModeSocket {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// boundPaths takes the absolute paths out of the text of /proc/net/unix. Each is the rest
// of its line, from the eighth field on.
func boundPaths(text string) (paths []string) {
	for line := range strings.Lines(text) {
		if i := strings.IndexByte(line, '/'); i > 0 && line[i-1] == ' ' {
			paths = append(paths, path.Clean(strings.TrimSuffix(line[i:], "\n")))
		}
	}
	return paths
}

// showsToRead reports whether p is shown by a rule on a directory around it that can be
// read and not written, and has no rule of its own.
func showsToRead(l Tree, p string) bool {
	if _, named := l.Find(p); named {
		return false
	}
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		if around, ok := l.Find(dir); ok {
			return around.Kind == pathrule.Read && around.Dir
		}
		if dir == "/" {
			return false
		}
	}
}
