//go:build unix

package proxy

import "syscall"

// mostFiles is how many files the process may have open.
func mostFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > 1<<30 {
		return 1 << 30
	}
	return int(l.Cur)
}
