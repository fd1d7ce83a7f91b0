//go:build unix

package gitobeyed

import "syscall"

// there reports whether a name is there, a link's too. It is asked twice for each directory: os.Lstat takes twice the time.
func there(name string) bool {
	var st syscall.Stat_t
	return syscall.Lstat(name, &st) == nil
}

// owner returns whose a file is; -1: it is not there.
func owner(name string) int {
	var st syscall.Stat_t
	if syscall.Lstat(name, &st) != nil {
		return -1
	}
	return int(st.Uid)
}

// device returns the file system that a file lies on; 0: it is not there.
func device(name string) uint64 {
	var st syscall.Stat_t
	if syscall.Lstat(name, &st) != nil {
		return 0
	}
	return uint64(st.Dev)
}
