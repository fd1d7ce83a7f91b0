package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// failedStart is the error of a step that has failed.
func failedStart(p plan.Plan, t *stage.Template, f *stage.Failure) error {
	if f == nil {
		return &StartError{Step: "run the stage", In: plan.Place(wire.InStage).String(), Err: errSilent}
	}
	e := &StartError{Step: t.StepName(f.Step), In: plan.Place(f.Where).String(), Err: f.Errno, Found: f.Found}
	if f.Step < len(p.Steps) {
		e.Field = p.Steps[f.Step].Field
		if o, ok := p.Steps[f.Step].Do.(plan.Overlay); ok && f.Errno == syscall.EINVAL {
			e.Field, e.Found = "Files.CopyOnWrite", mountIn(o.Lower)
		}
	}
	return e
}

// failedAs is the error of a step that has failed. One that the kernel has refused to another user than the harness's names the field that makes it so: the
// policy may have been made of what the harness itself can reach.
func failedAs(id stage.Identity, err error) error {
	if id.UID == os.Geteuid() || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return &policy.PolicyError{Field: "SysProcAttr.Credential", Value: fmt.Sprintf("user %d", id.UID), Problem: "may not reach what the policy grants", Err: err,
		Remedy: "run the harness as that user, or take what that user cannot reach out of the policy: Workspace and ReadOnly look in HOME and PATH"}
}

// mountIn says which mount keeps the kernel from making an overlay of a directory in a user namespace: mounts that came from
// outside are locked there (mount_namespaces(7)), and clone_private_mount of fs/namespace.c refuses what has one in it.
func mountIn(dir string) string {
	for at := range hostMounts() {
		if at != dir && pathrule.Within(at, dir) {
			return "the mount " + at + ", with which the kernel makes no copy in a user namespace: unmount it, or take " + dir + " out of Files.CopyOnWrite"
		}
	}
	return ""
}

// lostError is the error of what ended with a process of the sandbox's own; nil: it did not.
func lostError(lost *stage.Death, err error) *ProcessError {
	process := "init"
	switch {
	case lost == nil:
		return nil
	case lost.Warden:
		process = "warden"
	case lost.Keeper:
		return &ProcessError{Process: "keeper", Status: "ended", Err: err}
	}
	switch {
	case lost.Status == 0: // its parent took the status, or it never ends so
		return &ProcessError{Process: process, Status: "ended", Err: err}
	case lost.Status.Signaled():
		return &ProcessError{Process: process, Status: "was killed: " + lost.Status.Signal().String(), Err: err}
	}
	return &ProcessError{Process: process, Status: fmt.Sprintf("ended with status %d", lost.Status.ExitStatus()), Err: err}
}

// errSilent: a stage that exits without having said that the tool was held has
// not run it.
var errSilent = errors.New("the stage exited without reporting a status")
