package sandbox

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ownName is where the run's own directory will be. It is chosen when the run's
// environment is first asked for, and cannot be guessed.
func (r *run) ownName() string {
	r.making.Lock()
	defer r.making.Unlock()
	if r.named == "" {
		dir := os.TempDir()
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		r.named = filepath.Join(dir, "holdfast-"+rand.Text()[:ownLetters])
	}
	return r.named
}

// removeOwn removes it. On Linux the stage does so too, for the case that the
// harness does not live to do it.
func (r *run) removeOwn() {
	if r.own != "" {
		os.RemoveAll(r.own)
	}
}

// fillHome puts the files of Files.Make that lie in the policy's HOME into the run's own: git finds the user's identity there.
func (r *run) fillHome(uid, gid int) error {
	p := r.sandbox.ready.Policy
	home := p.Env.Set["HOME"]
	if home == "" {
		home = os.Getenv("HOME")
	}
	for _, f := range p.Files.Make {
		rel, ok := strings.CutPrefix(f.Path, strings.TrimSuffix(home, "/")+"/")
		if !ok || home == "" {
			continue
		}
		if err := writeOwn(filepath.Join(r.own, compile.RunHome), rel, f, uid, gid); err != nil {
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
