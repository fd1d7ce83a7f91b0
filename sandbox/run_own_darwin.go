package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/compile"
)

// ownLetters is how much of a random text is in the name of a run's own directory:
// a socket's path has 103 bytes (sun_path of sys/un.h), and TMPDIR takes 57 of them.
const ownLetters = 13

// isHomed reports whether HOME and TMPDIR are in the run's own directory: where the
// policy has private ones.
func (r *run) isHomed() bool {
	_, homed := r.sandbox.ready.Profile.NeedsOwn()
	return homed
}

// makeOwn makes the run's own directory, if it has one, with what the harness puts
// there.
func (r *run) makeOwn() (err error) {
	needed, homed := r.sandbox.ready.Profile.NeedsOwn()
	if !needed {
		return nil
	}
	uid, gid := r.user()
	dir := r.ownName()
	if err := os.Mkdir(dir, 0o700); err != nil { // one that is there is not this run's
		return fmt.Errorf("sandbox: make the run's own directory: %w", err)
	}
	r.own = dir
	defer func() {
		if err != nil {
			r.removeOwn()
		}
	}()
	if homed {
		for _, name := range []string{compile.RunHome, compile.RunTmp} {
			at := filepath.Join(dir, name)
			err := os.Mkdir(at, 0o700)
			if err == nil && uid != os.Geteuid() {
				err = os.Chown(at, uid, gid)
			}
			if err != nil {
				return fmt.Errorf("sandbox: make the run's own directory: %w", err)
			}
		}
	}
	if homed {
		if err := r.fillHome(uid, gid); err != nil {
			return err
		}
	}
	if uid != os.Geteuid() {
		if err := os.Chmod(dir, 0o711); err != nil { // what is in it is the other user's
			return fmt.Errorf("sandbox: make the run's own directory: %w", err)
		}
	}
	if err := r.net.WriteFiles(dir, uid, gid); err != nil {
		return err
	}
	return r.net.ListenAgent(dir, uid, gid)
}

// user is who the tool will be.
func (r *run) user() (uid, gid int) {
	if a := r.cmd.SysProcAttr; a != nil && a.Credential != nil {
		return int(a.Credential.Uid), int(a.Credential.Gid)
	}
	return os.Geteuid(), os.Getegid()
}
