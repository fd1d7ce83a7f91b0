package sandbox

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// ownName is where the run's own directory will be. It is chosen when the run's
// environment is first asked for, and nobody can guess it.
func (r *run) ownName() string {
	r.plugging.Lock()
	defer r.plugging.Unlock()
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
