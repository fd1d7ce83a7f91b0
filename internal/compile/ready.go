package compile

import (
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// lateCalls are what the tool's process calls, with its filters loaded already, that has stood ready for a command of a
// session: readyTool of package child, the ops of phaseLate, and execve.
var lateCalls = []struct {
	name string
	args []uint64
}{
	{"futex", nil},
	{"rt_sigtimedwait", nil},
	{"prctl", []uint64{setName}},
	{"umask", nil},
	{"setsid", nil},
	{"ioctl", []uint64{0, takeTerminal}},
	{"chdir", nil},
	{"rt_sigaction", nil},
	{"rt_sigprocmask", nil},
	{"execve", []uint64{0, 0, 0, 0, 0, supervisor.ExecMark}},
	{"execveat", []uint64{0, 0, 0, 0, emptyPath, supervisor.ExecMark}},
	{"exit_group", nil},
}

const setName, takeTerminal, emptyPath = 15, 0x540e, 0x1000 // PR_SET_NAME, TIOCSCTTY, AT_EMPTY_PATH

// standsReady reports whether every filter of the tool lets those calls pass.
func standsReady(p *plan.Plan, a seccomp.Arch) bool {
	for _, s := range p.Steps {
		var program seccomp.Program
		switch do := s.Do.(type) {
		case plan.LoadFilter:
			program = do.Program
		case plan.LoadKeeperFilter:
			program = do.Program
		case plan.LoadSupervisor:
			program = do.Program
		default:
			continue
		}
		for _, late := range lateCalls {
			call, err := seccomp.NewCall(a, late.name, late.args...)
			if err != nil {
				return false
			}
			if action, err := program.Evaluate(call); err != nil || action != seccomp.Allow {
				return false
			}
		}
	}
	return true
}
