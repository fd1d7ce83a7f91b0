package kerneltest

// Feature is something of the kernel that a Child can be without.
type Feature string

// The features. Each is taken away for the child and all its descendants, in
// the way in which hosts that lack it refuse it.
const (
	// UserNamespaces: clone(2) and unshare(2) with CLONE_NEWUSER fail with
	// EPERM, as in most containers; clone3(2), whose flags no filter sees, with ENOSYS.
	UserNamespaces Feature = "user namespaces"

	// UserNamespaceCalls: the same calls fail with ENOSYS, as under a filter that
	// plays a kernel without them.
	UserNamespaceCalls Feature = "calls for user namespaces"

	// MoreUserNamespaces: the child is in a fresh user namespace whose
	// max_user_namespaces is 0, so that a further one fails with ENOSPC
	// (namespaces(7)). Root is the namespace's root there, without a privilege outside of it.
	MoreUserNamespaces Feature = "further user namespaces"

	// Namespaces: clone, unshare and setns with any CLONE_NEW flag fail with
	// EPERM, clone3 with ENOSYS.
	Namespaces Feature = "namespaces"

	// Mounts: mount, umount2, pivot_root and the calls of MountAPI fail with
	// EPERM, as under a container engine's profile.
	Mounts Feature = "mounts"

	// WholeProc: parts of /proc are covered in a mount namespace of the child's, /proc/sys among them, as in a container: the kernel lets no
	// user namespace mount a procfs then (mount_too_revealing in fs/namespace.c).
	WholeProc Feature = "a /proc without covers"

	// PivotRoot: pivot_root fails with EPERM, as under Docker's profile with CAP_SYS_ADMIN; on an initramfs it fails with EINVAL.
	PivotRoot Feature = "pivot_root"

	// MountAPI: fsopen, fsconfig, fsmount, fspick, open_tree, move_mount and
	// mount_setattr fail with ENOSYS, as before Linux 5.2.
	MountAPI Feature = "the mount API"

	// MountSetattr: mount_setattr fails with ENOSYS, as before Linux 5.12.
	MountSetattr Feature = "mount_setattr"

	// Landlock: landlock_* fail with ENOSYS, as where it is not built in.
	Landlock Feature = "Landlock"

	// LandlockAtBoot: landlock_* fail with EOPNOTSUPP, as where it is built in
	// and not in the list of security modules (landlock(7)).
	LandlockAtBoot Feature = "Landlock, turned on at boot"

	// SeccompFilter: seccomp(2) fails with ENOSYS and prctl(2) with
	// PR_SET_SECCOMP with EINVAL.
	SeccompFilter Feature = "seccomp filters"

	// SeccompListener: seccomp with SECCOMP_FILTER_FLAG_NEW_LISTENER fails
	// with EINVAL, as before Linux 5.0.
	SeccompListener Feature = "seccomp listeners"

	// SeccompActions: seccomp with SECCOMP_GET_ACTION_AVAIL fails with EINVAL, as
	// in gVisor, which takes filters.
	SeccompActions Feature = "the question about seccomp actions"

	// Clone3: clone3 fails with ENOSYS.
	Clone3 Feature = "clone3"

	// Openat2: openat2 fails with ENOSYS, as before Linux 5.6.
	Openat2 Feature = "openat2"

	// Statx and Faccessat2: the call fails with EPERM, as under a container's profile that is older than it.
	Statx      Feature = "statx"
	Faccessat2 Feature = "faccessat2"

	// PidFD: pidfd_open, pidfd_send_signal and pidfd_getfd fail with ENOSYS,
	// as before Linux 5.1.
	PidFD Feature = "pidfds"

	// ProcessCalls: process_vm_readv, process_vm_writev, pidfd_getfd, kcmp and ptrace fail with EPERM, as in
	// a container without CAP_SYS_PTRACE (Docker 20.10, containerd 1.6; later ones refuse some of them).
	ProcessCalls Feature = "calls into other processes"

	// CloseRange: close_range fails with ENOSYS, as before Linux 5.9.
	CloseRange Feature = "close_range"

	// Memfd: memfd_create fails with ENOSYS.
	Memfd Feature = "memfd_create"

	// MemfdExec: memfd_create with MFD_EXEC fails with EACCES, as where
	// vm.memfd_noexec is 2 (Linux 6.3).
	MemfdExec Feature = "executable memfds"

	// Keyrings: keyctl, add_key and request_key fail with ENOSYS.
	Keyrings Feature = "keyrings"

	// IOUring: io_uring_* fail with ENOSYS.
	IOUring Feature = "io_uring"
)

// Features returns every feature that can be taken away.
func Features() []Feature {
	return []Feature{
		UserNamespaces, UserNamespaceCalls, MoreUserNamespaces, Namespaces, Mounts, WholeProc, PivotRoot, MountAPI, MountSetattr,
		Landlock, LandlockAtBoot, SeccompFilter, SeccompListener, SeccompActions, Clone3, Openat2, Statx, Faccessat2,
		PidFD, ProcessCalls, CloseRange, Memfd, MemfdExec, Keyrings, IOUring,
	}
}
