package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/compile"
)

// ownLetters is how much of a random text is in the name of a run's own directory:
// a socket's path has 103 bytes (sun_path of sys/un.h), and TMPDIR takes 57 of them.
const ownLetters = 13

// ownHome is the tool's home in the run's own directory, where what the harness has put is not the tool's to change.
const ownHome = compile.RunHome

// isHomed reports whether HOME and TMPDIR are in a run's own directory: where the
// policy has private ones.
func (s *Sandbox) isHomed() bool {
	_, homed := s.Profile.NeedsOwn()
	return homed
}

func canMakeIn(dir string) bool { return true }

func removeTree(dir string) { os.RemoveAll(dir) }

// make makes the directory, with what the harness puts there. What is made of it when it fails is removed.
func (d *ownDir) make(s *Sandbox, n *Network, uid, gid int) (err error) {
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
	if s.isHomed() {
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
		if err := d.fillHome(s.Policy, uid, gid); err != nil {
			return err
		}
	}
	if uid != os.Geteuid() {
		if err := os.Chmod(dir, 0o711); err != nil { // what is in it is the other user's
			return fmt.Errorf("sandbox: make the run's own directory: %w", err)
		}
	}
	if err := n.WriteFiles(dir, uid, gid); err != nil {
		return err
	}
	return n.ListenAgent(dir, uid, gid)
}

// user is who the tool will be.
func user(cmd *exec.Cmd) (uid, gid int) {
	if a := cmd.SysProcAttr; a != nil && a.Credential != nil {
		return int(a.Credential.Uid), int(a.Credential.Gid)
	}
	return os.Geteuid(), os.Getegid()
}
