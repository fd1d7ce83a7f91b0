package runner

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/compile"
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

// isOwn reports whether a path lies in the own directory of a run, of whatever harness: its name says so.
func isOwn(p string) bool {
	for c := range strings.SplitSeq(p, "/") {
		if letters, ok := strings.CutPrefix(c, "holdfast-"); ok && len(letters) == ownLetters && strings.Trim(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == "" {
			return true
		}
	}
	return false
}
