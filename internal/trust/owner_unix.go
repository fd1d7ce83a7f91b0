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

// ownedBy reports whether a file is root's, or with own this user's. In a directory of the system it may be a foreigner's also where this user
// namespace has a user of that number, unless that is this user.
func ownedBy(info fs.FileInfo, own, system bool) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || own && int(st.Uid) == os.Geteuid() {
		return ok
	}
	unmapped, mapped := foreigner()
	return st.Uid == overflow && (unmapped || mapped && system && os.Geteuid() != overflow)
}

// writableByOthers reports whether another user than the owner can write to a file. A group whose number is its only
// user's counts as the user: shadow-utils makes one for each, and gives such users a umask of 0002 (pam_umask(8),
// usergroups).
func writableByOthers(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	private := ok && st.Uid != 0 && st.Gid == st.Uid && int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid()
	return info.Mode().Perm()&0o002 != 0 || info.Mode().Perm()&0o020 != 0 && !private
}

// overflow is the user who owns what belongs to users that this user namespace does not map, root outside among them
// (user_namespaces(7), "Unmapped user and group IDs"): /proc/sys/kernel/overflowuid by default.
const overflow = 65534

// foreigner reports whether overflow is not one of the namespace's own users: no process here makes files of such a user. mapped is whether
// it is one in a namespace that is not the machine's first.
var foreigner = sync.OnceValues(func() (unmapped, mapped bool) {
	maps, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false, false
	}
	for line := range strings.Lines(string(maps)) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err != nil || n == 1<<32-1 {
			return false, false
		}
		mapped = mapped || inside <= overflow && overflow < inside+n
	}
	return !mapped, mapped
})

// ownGroup has a command's context end the processes that the command started, too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
