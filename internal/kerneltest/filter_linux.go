package kerneltest

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets into struct seccomp_data (seccomp(2)); an argument's low half comes
// first, both architectures being little-endian.
const (
	dataNR   = 0
	dataArch = 4
	dataArgs = 16
)

// arch returns this program's architecture as seccomp_data.arch holds it.
func arch() (uint32, error) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil
	}
	return 0, fmt.Errorf("kerneltest: no filters on %s", runtime.GOARCH)
}

// assemble writes the rules as a BPF program that tries them in order and
// allows the rest. Calls of a foreign architecture are allowed: a filter here
// plays an older kernel and defends nothing.
func assemble(arch uint32, rules []refusal) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	ret := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
	}
	jump := func(op uint16, value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: yes, Jf: no, K: value}
	}
	program := []unix.SockFilter{
		load(dataArch),
		jump(unix.BPF_JEQ, arch, 1, 0),
		ret(unix.SECCOMP_RET_ALLOW),
	}
	for _, rule := range rules {
		fail := ret(unix.SECCOMP_RET_ERRNO | uint32(rule.errno))
		argument := load(dataArgs + 8*uint32(rule.arg))
		program = append(program, load(dataNR))
		switch rule.when {
		case always:
			program = append(program, jump(unix.BPF_JEQ, uint32(rule.nr), 0, 1), fail)
		case anyBit:
			program = append(program, jump(unix.BPF_JEQ, uint32(rule.nr), 0, 3), argument,
				jump(unix.BPF_JSET, rule.value, 0, 1), fail)
		case equals:
			program = append(program, jump(unix.BPF_JEQ, uint32(rule.nr), 0, 3), argument,
				jump(unix.BPF_JEQ, rule.value, 0, 1), fail)
		}
	}
	return append(program, ret(unix.SECCOMP_RET_ALLOW))
}

// install puts the rules upon the calling thread, which must be locked and is
// about to execute: the filter survives execve(2), the other threads do not.
func install(rules []refusal) error {
	if len(rules) == 0 {
		return nil
	}
	arch, err := arch()
	if err != nil {
		return err
	}
	program := assemble(arch, rules)
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	load := func() error {
		_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
		if errno != 0 {
			return fmt.Errorf("kerneltest: seccomp: %w", errno)
		}
		return nil
	}
	err = load()
	if err == nil {
		return nil
	}
	// Without CAP_SYS_ADMIN the kernel wants no_new_privs first (seccomp(2), EACCES).
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("kerneltest: no_new_privs: %w", err)
	}
	return load()
}

// Filtered reports whether a filter was around the test process from the start, as in most containers: calls that this kernel has are
// refused there, by EPERM or ENOSYS, with and without what a test is about.
func Filtered() bool {
	pid := os.Getpid()
	if inside != nil {
		pid = inside.Parent
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && regexp.MustCompile(`(?m)^Seccomp:\s+2$`).Match(status)
}
