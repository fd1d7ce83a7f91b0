//go:build !linux

package runner

// interruptThreads is Linux's.
func interruptThreads() {}
