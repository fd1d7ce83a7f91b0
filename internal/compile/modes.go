package compile

import (
	"slices"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// fileCalls are the rules on calls that make files past the bound on files, whatever the mounts, Landlock and the
// supervisor say. They come after others, of which one may refuse rings already.
func (c *compilation) fileCalls(others []seccomp.Rule) []seccomp.Rule {
	if c.open(policy.BoundFiles) {
		return nil
	}
	rules := slices.Clone(noNamesByIoctl)
	if c.guardsNames() || c.root.Nest {
		return rules // the supervisor takes the mode bits away; a sandbox inside is built by openat2(2)
	}
	if c.Policy.Nested && len(c.writeRoots()) == 0 {
		return append(rules, noSetIDOf...) // a sandbox inside is built by openat2(2), which makes none of the host's files here
	}
	rules = append(rules, noSetID...)
	if !slices.ContainsFunc(others, func(r seccomp.Rule) bool { return slices.Contains(r.Names, noRings.Names[0]) }) {
		rules = append(rules, noRings)
	}
	return rules
}

const (
	ioctlTypeMask  = 0xff00
	ioctlBtrfs     = 0x94 << 8
	ioctlBcachefs  = 0xbc << 8
	ocfs2Reflink   = 0x40186f04 // OCFS2_IOC_REFLINK, fs/ocfs2/ocfs2_ioctl.h
	ficlone        = 0x40049409 // include/uapi/linux/fs.h
	ficloneRange   = 0x4020940d
	fidedupeRange  = 0xc0189436
	btrfsFsInfo    = 0x8400941f // include/uapi/linux/btrfs.h
	btrfsDevInfo   = 0xd000941e
	btrfsSpaceInfo = 0xc0109414
	btrfsFeatures  = 0x80189439
	btrfsSubvolGet = 0x80089419 // the flags of a subvolume
	btrfsSubvol    = 0x81f8943c // what a subvolume is
)

// noNamesByIoctl: btrfs, bcachefs and ocfs2 make names by ioctl(2) and without privilege: subvolumes, and snapshots, which
// are copies without the mounts that hide or protect something in them, and before Linux 6.7 of more than the directory
// named (commit a8892fd71933). What copies between two open files stays, and what asks. The kernel takes 32 bits of
// the command. XFS, ext4 and f2fs have no command that makes a name without a capability.
var noNamesByIoctl = []seccomp.Rule{
	{Names: []string{"ioctl"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{
		{Index: 1, Op: seccomp.MaskedEqual, Mask: ioctlTypeMask, Value: ioctlBtrfs},
		not(ficlone), not(ficloneRange), not(fidedupeRange),
		not(btrfsFsInfo), not(btrfsDevInfo), not(btrfsSpaceInfo), not(btrfsFeatures), not(btrfsSubvolGet), not(btrfsSubvol),
	}, Reason: "btrfs makes subvolumes and snapshots by it, past the rules on names"},
	{Names: []string{"ioctl"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{
		{Index: 1, Op: seccomp.MaskedEqual, Mask: ioctlTypeMask, Value: ioctlBcachefs},
	}, Reason: "bcachefs makes subvolumes and snapshots by it, past the rules on names"},
	{Names: []string{"ioctl"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 1, Value: ocfs2Reflink}},
		Reason: "ocfs2 makes a file by it, past the rules on names"},
}

// noInodeFlags are rules that keep flags, versions and the like of files outside as they are, where no mount is read-only: their owner sets them by
// a descriptor for reading (vfs_fileattr_set in fs/file_attr.c), and Landlock knows the ioctl(2) of devices alone. A filter cannot tell
// whose file a descriptor is: the tool's own have none either.
func noInodeFlags() []seccomp.Rule {
	rules := []seccomp.Rule{{Names: []string{"file_setattr"}, Action: seccomp.Errno(errNoSys), Reason: "the same without a descriptor (Linux 6.17)"}}
	for _, command := range []uint64{
		0x40086602, 0x401c5820, // FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR, include/uapi/linux/fs.h
		0x40087602, 0x40086604, // FS_IOC_SETVERSION, EXT4_IOC_SETVERSION_OLD
		0x6609, 0x660c, // EXT4_IOC_MIGRATE, EXT4_IOC_ALLOC_DA_BLKS
		0x40047211, // FAT_IOCTL_SET_ATTRIBUTES, include/uapi/linux/msdos_fs.h
		0x800c6613, // FS_IOC_SET_ENCRYPTION_POLICY, include/uapi/linux/fscrypt.h
		0x40806685, // FS_IOC_ENABLE_VERITY, include/uapi/linux/fsverity.h: nothing can write the file any more
	} {
		rules = append(rules, seccomp.Rule{Names: []string{"ioctl"}, Action: seccomp.Errno(errNoTTY), Args: []seccomp.Arg{{Index: 1, Value: command}},
			Reason: "changes files outside by a descriptor for reading"})
	}
	return rules
}

func not(command uint64) seccomp.Arg {
	return seccomp.Arg{Index: 1, Op: seccomp.NotEqual, Value: command}
}

const (
	modeSetUID = 0o4000
	modeSetGID = 0o2000
	flagCreate = 0o100       // O_CREAT
	flagNoName = 0o2000_0000 // the bit of O_TMPFILE that is its own
)

// noSetID keeps files that take their owner's or group's rights from being made, where the supervisor does not see to it:
// outside, such a file gives another account of the machine the user's rights, or root's. A filter sees no
// difference between a file and a directory. openat2(2) has its mode in memory.
var noSetID = append(slices.Clone(noSetIDOf), seccomp.Rule{Names: []string{"openat2"}, Action: seccomp.Errno(errNoSys), Reason: "makes files with a mode that no filter sees"})

// noSetIDOf are those of noSetID that leave openat2 alone.
var noSetIDOf = makeNoSetID()

func makeNoSetID() []seccomp.Rule {
	const reason = "a setuid or setgid file gives others the user's rights"
	var rules []seccomp.Rule
	add := func(mode uint8, more []seccomp.Arg, names ...string) {
		for _, bit := range []uint64{modeSetUID, modeSetGID} {
			args := append([]seccomp.Arg{{Index: mode, Op: seccomp.MaskedEqual, Mask: bit, Value: bit}}, more...)
			rules = append(rules, seccomp.Rule{Names: names, Action: seccomp.Errno(errPerm), Args: args, Reason: reason})
		}
	}
	add(1, nil, "chmod", "fchmod", "creat", "mknod")
	add(2, nil, "fchmodat", "fchmodat2", "mknodat")
	for _, makes := range []uint64{flagCreate, flagNoName} {
		add(2, []seccomp.Arg{{Index: 1, Op: seccomp.MaskedEqual, Mask: makes, Value: makes}}, "open")
		add(3, []seccomp.Arg{{Index: 2, Op: seccomp.MaskedEqual, Mask: makes, Value: makes}}, "openat")
	}
	return rules
}

var noRings = seccomp.Rule{Names: []string{"io_uring_setup"}, Action: seccomp.Errno(errNoSys), Reason: "a ring makes files out of a filter's sight"}
