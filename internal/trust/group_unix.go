//go:build unix

package trust

import (
	"os/exec"
	"syscall"
)

// ownGroup has a command's context end the processes that the command started, too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
