package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/stage"
)

// ownLetters is how much of a random text is in the name of a run's own directory.
const ownLetters = 26

// isHomed reports whether HOME and TMPDIR are in the run's own directory.
func (r *run) isHomed() bool { return true }

// makeOwn makes the run's own directory, where no mount can be private: with a
// home and a tmp in it, which HOME and TMPDIR then name.
func (r *run) makeOwn(id stage.Identity) (err error) {
	if !r.template.NeedsOwn() {
		return nil
	}
	defer func() {
		if err == nil {
			err = r.net.WriteFiles(r.own, id.UID, id.GID)
		}
		if err != nil {
			r.removeOwn()
		}
	}()
	dir := r.ownName()
	if err := os.Mkdir(dir, 0o700); err != nil { // one that is there is not this run's
		return fmt.Errorf("sandbox: make the run's own directory: %w", err)
	}
	r.own = dir
	for _, d := range []string{filepath.Join(dir, compile.RunHome), filepath.Join(dir, compile.RunTmp), dir} {
		err := os.MkdirAll(d, 0o700)
		if err == nil && id.UID != os.Geteuid() {
			err = os.Chown(d, id.UID, id.GID)
		}
		if err != nil {
			return fmt.Errorf("sandbox: make the run's own directory: %w", err)
		}
	}
	return r.fillHome(id.UID, id.GID)
}
