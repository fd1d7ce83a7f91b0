//go:build !linux

package seccomp

const loadBenchmark = "HOLDFAST_SECCOMP_LOAD"

// loadOften is for Linux.
func loadOften(string) int { return 1 }
