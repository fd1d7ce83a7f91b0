package runner

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// ownLetters is how much of a random text is in the name of a run's own directory.
const ownLetters = 26

// ownHome is the tool's home in the run's own directory: that itself, since a directory more takes time to make and to remove on a disk.
const ownHome = ""

// isHomed reports whether HOME and TMPDIR are in a run's own directory, if it has one.
func (s *Sandbox) isHomed() bool { return true }

// canMakeIn reports whether this process may make a directory in dir: it is writable, and its file system not read-only.
func canMakeIn(dir string) bool {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) == nil
}

// make makes the directory, which HOME names where the policy has no other, with a tmp in it, which TMPDIR names where the policy has no other,
// and the network's files. What is made of it when it fails is removed.
func (d *ownDir) make(p policy.Policy, n *Network, id stage.Identity) (err error) {
	dir := d.name()
	if err := os.Mkdir(dir, 0o700); err != nil { // one that is there is not this run's
		return &StartError{Step: "make the run's own directory: one of TMPDIR, /tmp, /var/tmp and /dev/shm has to be writable (Docker: --tmpfs /tmp)", In: "harness", Err: err}
	}
	d.made = dir
	defer func() {
		if err != nil {
			d.remove()
		}
	}()
	failed := func(err error) error {
		return &StartError{Step: "make the run's own directory", In: "harness", Err: err}
	}
	ours := []string{dir}
	if p.Files.Tmp == "" {
		ours = []string{filepath.Join(dir, compile.RunTmp), dir}
		if err := os.Mkdir(ours[0], 0o700); err != nil {
			return failed(err)
		}
	}
	if err := checkNames(p, n); err != nil {
		return err
	}
	if err := d.fillHome(p, id.UID, id.GID); err != nil {
		return err
	}
	if err := n.WriteFiles(dir, id.UID, id.GID); err != nil {
		return err
	}
	if id.UID == os.Geteuid() {
		return nil
	}
	for _, at := range ours { // last: a process of that user could have put links where the harness writes
		if err := os.Chown(at, id.UID, id.GID); err != nil {
			return failed(err)
		}
	}
	return nil
}

// checkNames refuses a file of Files.Make at a name in HOME that is not free, since HOME is the directory itself.
func checkNames(p policy.Policy, n *Network) error {
	for i, f := range p.Files.Make {
		rel, ok := inHome(p, f)
		first, _, _ := strings.Cut(rel, "/")
		if ok && (slices.Contains(networkFiles[:len(n.files)], first) || rel == compile.RunTmp && p.Files.Tmp == "") {
			return &policy.PolicyError{Field: errtext.Indexed("Files.Make", i) + ".Path", Value: f.Path, Problem: "is a name in HOME that TMPDIR or the network's files have where no namespaces can be made",
				Remedy: "give the file another name, or set Files.Home"}
		}
	}
	return nil
}

// isOwn reports whether a path lies in the own directory of a run, of whatever harness: its name says so.
func isOwn(p string) bool {
	for c := range strings.SplitSeq(p, "/") {
		if letters, ok := strings.CutPrefix(c, "holdfast-"); ok && len(letters) == ownLetters && strings.Trim(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == "" {
			return true
		}
	}
	return false
}

// removeLevels bounds the descent of removeTree, each of which holds a descriptor, and removePasses its turns: on a file system whose names cannot
// be removed.
const removeLevels, removePasses = 32, 1 << 20

// A treeRemoval is that of a directory that a tool has filled, by the rules of internal/stage/child, whose own ends with the stage: what lies deeper than
// removeLevels is moved up, to a name that the tool could not know.
type treeRemoval struct {
	top     int  // descriptor of the directory
	changed bool // something was removed, or moved up, since top was opened: a killed stage's keeper does the same meanwhile
}

// removeTree removes a directory that is no link, and what is below it, as far as this process may. It follows no link.
func removeTree(dir string) {
	for range removePasses {
		top, err := openToRemove(unix.AT_FDCWD, dir)
		if err != nil {
			return
		}
		r := treeRemoval{top: int(top.Fd())}
		empty := r.below(top, removeLevels)
		top.Close()
		if err := unix.Unlinkat(unix.AT_FDCWD, dir, unix.AT_REMOVEDIR); err != unix.ENOTEMPTY || !r.changed && !empty {
			return
		}
	}
}

// openToRemove opens a directory, without following a symbolic link, and takes the right to change it; by its name only where it cannot be opened,
// which a harness with privileges can: a process that the sandbox does not hold could put a link in its place.
func openToRemove(dir int, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	if err == unix.EACCES {
		unix.Fchmodat(dir, name, 0o700, 0)
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	unix.Fchmod(fd, 0o700)
	return os.NewFile(uintptr(fd), name), nil
}

// below removes what is in an open directory, so many levels of it, and reports whether there was nothing.
func (r *treeRemoval) below(dir *os.File, levels int) (empty bool) {
	empty = true
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			r.entry(int(dir.Fd()), name, levels)
			empty = false
		}
		if err != nil || len(names) == 0 {
			return empty
		}
	}
}

// entry removes what a name in a directory names, or moves it up.
func (r *treeRemoval) entry(dir int, name string, levels int) {
	err := unix.Unlinkat(dir, name, 0)
	if err != nil && err != unix.ENOENT {
		if sub, err := openToRemove(dir, name); err == nil {
			if levels > 0 {
				r.below(sub, levels-1)
			}
			sub.Close()
		}
		if err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil && dir != r.top {
			err = unix.Renameat(dir, name, r.top, rand.Text())
		}
	}
	r.changed = r.changed || err == nil || err == unix.ENOENT
}
