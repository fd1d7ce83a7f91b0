package regularfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Open opens a regular file to read. An error is an fs.PathError. A file under a lease is not waited for (EAGAIN).
func Open(path string) (*os.File, error) {
	fail := func(err error) (*os.File, error) { return nil, &fs.PathError{Op: "open", Path: path, Err: err} }
	at, err := open(path, unix.O_PATH)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	var in unix.Statfs_t
	err = cmp.Or(unix.Fstat(at, &st), unix.Fstatfs(at, &in))
	switch {
	case err != nil:
		return fail(err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG, OfTheKernel(int64(in.Type)):
		return fail(ErrNotRegular)
	}
	fd, err := open("/proc/self/fd/"+strconv.Itoa(at), unix.O_RDONLY|unix.O_NONBLOCK)
	switch {
	case err == unix.ENOENT:
		return fail(errors.New("/proc is not mounted, by which it would be opened")) // which is not fs.ErrNotExist
	case err != nil:
		return fail(err)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return fail(err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func open(path string, flags int) (int, error) {
	for {
		if fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0); err != unix.EINTR {
			return fd, err
		}
	}
}

// OfTheKernel reports whether a file system, by its f_type of statfs(2), is one in which a read can take from others, and a write is an order to the
// kernel, which asks for the rights of the process that writes. AppArmor's and SELinux's of policies any user may open to write.
func OfTheKernel(kind int64) bool { return slices.Contains(ofTheKernel, kind) }

var ofTheKernel = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.RDTGROUP_SUPER_MAGIC, // resctrl
	unix.SECURITYFS_MAGIC, unix.AAFS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC,
	unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.BPF_FS_MAGIC, unix.BINFMTFS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC,
	configfsMagic, fusectlMagic, nfsdMagic,
}

// CONFIGFS_MAGIC, FUSE_CTL_SUPER_MAGIC and the number of nfsd's in the kernel's sources.
const configfsMagic, fusectlMagic, nfsdMagic = 0x62656570, 0x65735543, 0x6e667364
