package sandbox

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/stage"
)

// makeOwn makes the run's own directory, where no mount can be private: with a
// home and a tmp in it, which HOME and TMPDIR then name.
func (r *run) makeOwn(id stage.Identity) (err error) {
	if !r.template.NeedsOwn() {
		return nil
	}
	defer func() {
		if err == nil {
			err = r.out.write(r.own, id)
		}
		if err != nil {
			r.removeOwn()
		}
	}()
	dir := r.ownName()
	if err := os.Mkdir(dir, 0o700); err != nil { // one that is there is somebody else's
		return fmt.Errorf("sandbox: make the run's own directory: %w", err)
	}
	r.own = dir
	for _, d := range []string{filepath.Join(dir, "home"), filepath.Join(dir, "tmp"), dir} {
		err := os.MkdirAll(d, 0o700)
		if err == nil && id.UID != os.Geteuid() {
			err = os.Chown(d, id.UID, id.GID)
		}
		if err != nil {
			return fmt.Errorf("sandbox: make the run's own directory: %w", err)
		}
	}
	return nil
}

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
		r.named = filepath.Join(dir, "holdfast-"+rand.Text())
	}
	return r.named
}

// removeOwn removes it. The stage does so too, for the case that the harness
// does not live to do it.
func (r *run) removeOwn() {
	if r.own != "" {
		os.RemoveAll(r.own)
	}
}
