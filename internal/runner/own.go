package runner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An ownDir is a run's own directory, for a run that has one: the home and the tmp of its tool where no
// mount can be private, and what the harness puts there.
type ownDir struct {
	naming sync.Mutex
	named  string // what it is called, or will be
	made   string // "": it has not been made
}

// name is where the directory will be. It is chosen when the run's
// environment is first asked for, and cannot be guessed.
func (d *ownDir) name() string {
	d.naming.Lock()
	defer d.naming.Unlock()
	if d.named == "" {
		d.named = filepath.Join(ownPlace(), "holdfast-"+rand.Text()[:ownLetters])
	}
	return d.named
}

// lent are the canonical directories that tools of this process's sandboxes keep.
var lent struct {
	sync.Mutex
	dirs []string
}

// Lend notes Files.Tmp and Files.Home, and what of Files.Write has temporary files: no run has its own directory there, for tools of other runs could
// change what is in it. A harness's TMPDIR names the first.
func Lend(f policy.Files) {
	for _, dir := range append([]string{f.Tmp, f.Home}, f.Write...) {
		real, err := filepath.EvalSymlinks(dir)
		if dir == "" || err != nil || slices.Contains(f.Write, dir) && !slices.ContainsFunc(ownPlaces(), func(p string) bool { return pathrule.Within(p, real) }) {
			continue
		}
		lent.Lock()
		if !slices.Contains(lent.dirs, real) {
			lent.dirs = append(lent.dirs, real)
		}
		lent.Unlock()
	}
}

// ownPlaces are where a run's own directory can be, in this order, without links. /dev/shm is the one that a container with a read-only root has.
func ownPlaces() (list []string) {
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"} {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			list = append(list, real)
		}
	}
	return list
}

// ownPlace is a directory for temporary files that can be written and that no tool keeps.
func ownPlace() string {
	lent.Lock()
	defer lent.Unlock()
	for _, dir := range ownPlaces() {
		if !pathrule.WithinAny(dir, lent.dirs) && canMakeIn(dir) {
			return dir
		}
	}
	return os.TempDir()
}

// remove removes it. On Linux the stage does so too, for the case that the
// harness does not live to do it.
func (d *ownDir) remove() {
	if d.made != "" {
		removeTree(d.made)
	}
}

// variables make programs use the directory, if it has been made.
func (d *ownDir) variables(s *Sandbox) []string {
	if d.made == "" || !s.isHomed() {
		return nil
	}
	var vars []string
	for _, p := range ownSubs(s.Policy.Files) {
		vars = append(vars, p.variable+"="+filepath.Join(d.made, p.name))
	}
	if tmp := s.Policy.Files.Tmp; tmp != "" {
		vars = append(vars, tmuxTmpdir+"="+tmp)
	}
	return vars
}

// tmuxTmpdir names where tmux(1) has its socket: /tmp without it, whatever TMPDIR says.
const tmuxTmpdir = "TMUX_TMPDIR"

// An ownSub is a directory in the run's own, or that itself, and the variable that names it.
type ownSub struct{ variable, name string }

// ownSubs are those that the policy has no others for.
func ownSubs(f policy.Files) (list []ownSub) {
	if f.Home == "" {
		list = append(list, ownSub{"HOME", ownHome})
	}
	if f.Tmp == "" {
		list = append(list, ownSub{"TMPDIR", compile.RunTmp}, ownSub{tmuxTmpdir, compile.RunTmp})
	}
	return list
}

// fillHome puts the files of Files.Make that lie in the policy's HOME into the run's own: git finds the user's identity there.
func (d *ownDir) fillHome(p policy.Policy, uid, gid int) error {
	for _, f := range p.Files.Make {
		rel, ok := inHome(p, f)
		if !ok {
			continue
		}
		if err := writeOwn(filepath.Join(d.made, ownHome), rel, f, uid, gid); err != nil {
			return fmt.Errorf("sandbox: make %s in the run's own directory: %w", f.Path, err)
		}
	}
	return nil
}

// inHome returns the path in HOME of a file that belongs into the run's own; what belongs into Files.Home is Kept's.
func inHome(p policy.Policy, f policy.File) (rel string, ok bool) {
	home := p.Env.Set["HOME"]
	if home == "" {
		home = os.Getenv("HOME")
	}
	if p.Files.Home != "" || home == "" {
		return "", false
	}
	return strings.CutPrefix(f.Path, strings.TrimSuffix(home, "/")+"/")
}

// fillKept makes the files of the policy that belong into Files.Home, but for those that are there: the tool may have changed them. What
// the tool has put in their way stays, too; a link of the tool's leads nowhere outside of that directory (os.Root).
func (s *Sandbox) fillKept() error {
	for _, f := range s.Kept {
		rel := strings.TrimPrefix(f.Path, s.Policy.Files.Home+"/")
		if _, err := os.Lstat(f.Path); err == nil {
			continue
		}
		err := writeOwn(s.Policy.Files.Home, rel, f, os.Geteuid(), os.Getegid())
		var errno syscall.Errno // a path that leads outside is none
		if errors.As(err, &errno) && errno != syscall.EEXIST && errno != syscall.ENOTDIR && errno != syscall.ELOOP {
			return fmt.Errorf("sandbox: make %s, in Files.Home: %w", f.Path, err)
		}
	}
	return nil
}

// writeOwn makes a file and the directories above it, as far as they are not there.
func writeOwn(dir, rel string, f policy.File, uid, gid int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	made := func(name string, err error) error {
		if err == nil && uid != os.Geteuid() {
			err = root.Lchown(name, uid, gid)
		}
		return err
	}
	for i := range rel {
		if rel[i] != '/' {
			continue
		}
		if err := made(rel[:i], root.Mkdir(rel[:i], 0o755)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	mode := f.Mode
	if mode == 0 {
		mode = 0o444
	}
	file, err := root.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(f.Data)
	if e := file.Chmod(mode.Perm()); err == nil {
		err = e
	}
	if e := file.Close(); err == nil {
		err = e
	}
	return made(rel, err)
}
