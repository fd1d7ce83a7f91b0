//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// ownedByRootAlone reports whether a file, or the link itself, is root's and the
// harness is not root: no tool of the harness's can have made it.
func ownedByRootAlone(p string) bool {
	info, err := os.Lstat(p)
	if err != nil || os.Geteuid() == 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}
