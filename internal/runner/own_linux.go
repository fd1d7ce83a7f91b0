package runner

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ownLetters is how much of a random text is in the name of a run's own directory.
const ownLetters = 26

// isHomed reports whether HOME and TMPDIR are in a run's own directory, if it has one.
func (s *Sandbox) isHomed() bool { return true }

// make makes the directory: with a home and a tmp in it, which HOME and TMPDIR then name, and the network's
// files. What is made of it when it fails is removed.
func (d *ownDir) make(p policy.Policy, n *Network, id stage.Identity) (err error) {
	dir := d.name()
	if err := os.Mkdir(dir, 0o700); err != nil { // one that is there is not this run's
		return fmt.Errorf("sandbox: make the run's own directory: %w", err)
	}
	d.made = dir
	defer func() {
		if err != nil {
			d.remove()
		}
	}()
	for _, sub := range []string{filepath.Join(dir, compile.RunHome), filepath.Join(dir, compile.RunTmp), dir} {
		err := os.MkdirAll(sub, 0o700)
		if err == nil && id.UID != os.Geteuid() {
			err = os.Chown(sub, id.UID, id.GID)
		}
		if err != nil {
			return fmt.Errorf("sandbox: make the run's own directory: %w", err)
		}
	}
	if err := d.fillHome(p, id.UID, id.GID); err != nil {
		return err
	}
	return n.WriteFiles(dir, id.UID, id.GID)
}
