//go:build unix

package trust

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// ownedBy reports whether a file is root's, or with own this user's.
func ownedBy(info fs.FileInfo, own bool) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || own && int(st.Uid) == os.Geteuid() || int(st.Uid) == foreigner())
}

// writableByOthers reports whether another user than the owner can write to a file. A group whose number is its only
// user's counts as the user: shadow-utils makes one for each, and gives such users a umask of 0002 (pam_umask(8),
// usergroups).
func writableByOthers(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	private := ok && st.Uid != 0 && st.Gid == st.Uid && int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid()
	return info.Mode().Perm()&0o002 != 0 || info.Mode().Perm()&0o020 != 0 && !private
}

// foreigner returns the user who owns what belongs to users that this user namespace does not map, root outside among
// them, if that user is not one of the namespace's own: no process here makes files of such a user
// (user_namespaces(7), "Unmapped user and group IDs"). -1: there is no such user.
var foreigner = sync.OnceValue(func() int {
	const overflow = 65534 // /proc/sys/kernel/overflowuid by default
	maps, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(maps)) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err != nil || inside <= overflow && overflow < inside+n {
			return -1
		}
	}
	return overflow
})

// ownGroup has a command's context end the processes that the command started, too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
