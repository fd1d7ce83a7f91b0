package compile

import (
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// TestCallsThatMakeFilesPastTheRules runs the rules in an interpreter, under the default profile and under one
// that allows everything.
func TestCallsThatMakeFilesPastTheRules(t *testing.T) {
	refused, absent := seccomp.Errno(errPerm), seccomp.Errno(errNoSys)
	const above = 1 << 32
	tests := []struct {
		name string
		call string
		args []uint64
		want seccomp.Action
	}{
		{"a subvolume", "ioctl", []uint64{3, 0x5000940e}, refused},
		{"a snapshot of the first kind", "ioctl", []uint64{3, 0x50009401}, refused},
		{"a snapshot", "ioctl", []uint64{3, 0x50009417}, refused},
		{"a snapshot, with bits that the kernel does not look at", "ioctl", []uint64{3, above | 0x50009417}, refused},
		{"a subvolume with options", "ioctl", []uint64{3, 0x50009418}, refused},
		{"a subvolume destroyed", "ioctl", []uint64{3, 0x5000940f}, refused},
		{"a subvolume destroyed by its number", "ioctl", []uint64{3, 0x5000943f}, refused},
		{"a subvolume made writable", "ioctl", []uint64{3, 0x4008941a}, refused},
		{"a command of btrfs that is not known yet", "ioctl", []uint64{3, 0x500094ff}, refused},
		{"the clone of a file", "ioctl", []uint64{3, ficlone}, seccomp.Allow},
		{"the clone of a file, with bits that the kernel does not look at", "ioctl", []uint64{3, above | ficlone}, seccomp.Allow},
		{"the clone of a range", "ioctl", []uint64{3, ficloneRange}, seccomp.Allow},
		{"the same bytes stored once", "ioctl", []uint64{3, fidedupeRange}, seccomp.Allow},
		{"what a file system is", "ioctl", []uint64{3, btrfsFsInfo}, seccomp.Allow},
		{"what a subvolume is", "ioctl", []uint64{3, btrfsSubvol}, seccomp.Allow},
		{"a subvolume of bcachefs", "ioctl", []uint64{3, 0x4020bc10}, refused},
		{"the same, with bits that the kernel does not look at", "ioctl", []uint64{3, above | 0x4020bc10}, refused},
		{"a copy by ocfs2", "ioctl", []uint64{3, ocfs2Reflink}, refused},
		{"the size of a terminal", "ioctl", []uint64{3, 0x5413}, seccomp.Allow},
		{"flags of a file", "ioctl", []uint64{3, 0x80086601}, seccomp.Allow},

		{"setuid", "fchmodat", []uint64{3, 1, 0o4755}, refused},
		{"setgid", "fchmodat", []uint64{3, 1, 0o2755}, refused},
		{"both, with bits above", "fchmodat2", []uint64{3, 1, above | 0o6755, 0}, refused},
		{"setuid of a descriptor", "fchmod", []uint64{3, 0o4000}, refused},
		{"the sticky bit", "fchmod", []uint64{3, 0o1777}, seccomp.Allow},
		{"a plain mode", "fchmodat", []uint64{3, 1, 0o777}, seccomp.Allow},
		{"a node", "mknodat", []uint64{3, 1, 0o104755, 0}, refused},
		{"a plain node", "mknodat", []uint64{3, 1, 0o100755, 0}, seccomp.Allow},
		{"a new file", "openat", []uint64{3, 1, 0o101, 0o4755}, refused},
		{"a new file of a group", "openat", []uint64{3, 1, 0o101, 0o2755}, refused},
		{"a nameless file", "openat", []uint64{3, 1, 0o20200002, 0o4755}, refused},
		{"a new plain file", "openat", []uint64{3, 1, 0o101, 0o755}, seccomp.Allow},
		{"an open whose mode is left over in a register", "openat", []uint64{3, 1, 1, 0o6755}, seccomp.Allow},
		{"a mode in memory", "openat2", []uint64{3, 1, 1, 24}, absent},
		{"a ring", "io_uring_setup", []uint64{8, 1}, absent},
		{"amd64's chmod", "chmod", []uint64{1, 0o4755}, refused},
		{"amd64's creat", "creat", []uint64{1, 0o4755}, refused},
		{"amd64's open", "open", []uint64{1, 0o101, 0o4755}, refused},
		{"amd64's mknod", "mknod", []uint64{1, 0o104755, 0}, refused},
	}
	for _, arch := range []seccomp.Arch{seccomp.AMD64, seccomp.ARM64} {
		for profileName, profile := range map[string]seccomp.Filter{"the default profile": seccomp.Default(), "a profile that allows all": {Default: seccomp.Allow, Unknown: seccomp.Errno(errNoSys)}} {
			c := compilation{open: func(policy.Bound) bool { return false }}
			program, err := profile.With(c.fileCalls(nil)...).Compile(arch)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range tests {
				call, err := seccomp.NewCall(arch, test.call, test.args...)
				if err != nil && arch == seccomp.ARM64 {
					continue // it has newer calls alone
				}
				if err != nil {
					t.Fatal(err)
				}
				if got, err := program.Evaluate(call); err != nil || got != test.want {
					t.Errorf("%v, %s, %s: %v, want %v, %v", arch, profileName, test.name, got, test.want, err)
				}
			}
		}
	}
}
