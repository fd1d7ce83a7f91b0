//go:build unix

package proxy

import "syscall"

// maxFiles is how many files the process may have open.
func maxFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > 1<<30 {
		return 1 << 30
	}
	return int(l.Cur)
}
