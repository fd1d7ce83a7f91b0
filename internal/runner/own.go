package runner

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/compile"
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
		dir := os.TempDir()
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		d.named = filepath.Join(dir, "holdfast-"+rand.Text()[:ownLetters])
	}
	return d.named
}

// remove removes it. On Linux the stage does so too, for the case that the
// harness does not live to do it.
func (d *ownDir) remove() {
	if d.made != "" {
		os.RemoveAll(d.made)
	}
}

// variables make programs use the directory, if it has been made.
func (d *ownDir) variables(s *Sandbox) []string {
	if d.made == "" || !s.isHomed() {
		return nil
	}
	return []string{"HOME=" + filepath.Join(d.made, compile.RunHome), "TMPDIR=" + filepath.Join(d.made, compile.RunTmp)}
}

// fillHome puts the files of Files.Make that lie in the policy's HOME into the run's own: git finds the user's identity there.
func (d *ownDir) fillHome(p policy.Policy, uid, gid int) error {
	home := p.Env.Set["HOME"]
	if home == "" {
		home = os.Getenv("HOME")
	}
	for _, f := range p.Files.Make {
		rel, ok := strings.CutPrefix(f.Path, strings.TrimSuffix(home, "/")+"/")
		if !ok || home == "" {
			continue
		}
		if err := writeOwn(filepath.Join(d.made, compile.RunHome), rel, f, uid, gid); err != nil {
			return fmt.Errorf("sandbox: make %s in the run's own directory: %w", f.Path, err)
		}
	}
	return nil
}

// writeOwn makes a file and the directories above it, all of which are new.
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
