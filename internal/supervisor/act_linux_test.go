package supervisor

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// actRole is a program for the tool's scripts: it makes the calls that no shell command makes. Its exit status is 0
// when the call went through.
func actRole(string) int {
	a := append(os.Args[1:], "", "")
	if a[0] == "ownproc" {
		return ownProcFiles()
	}
	if err := theAct(a...); err != nil {
		fmt.Println(a[0], err)
		return 1
	}
	return 0
}

func theAct(a ...string) (err error) {
	switch a[0] {
	case "names":
		return attackNames()
	case "bind":
		fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: a[1]})
	case "exchange":
		err = unix.Renameat2(unix.AT_FDCWD, a[1], unix.AT_FDCWD, a[2], unix.RENAME_EXCHANGE)
	case "tmpfile":
		var fd int
		if fd, err = unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o755); err == nil {
			unix.Write(fd, []byte("evil\n"))
			err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, a[1], unix.AT_SYMLINK_FOLLOW)
		}
	case "openat2":
		_, err = unix.Openat2(unix.AT_FDCWD, a[1], &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o755})
	case "creat":
		_, err = unix.Creat(a[1], 0o755)
	case "mknod":
		err = unix.Mknod(a[1], unix.S_IFREG|0o755, 0)
	case "chmodlink":
		err = unix.Fchmodat(unix.AT_FDCWD, a[1], 0o700, unix.AT_SYMLINK_NOFOLLOW)
	case "truncate":
		err = unix.Truncate(a[1], 0)
	case "fchmod":
		var fd int
		if fd, err = unix.Open(a[1], unix.O_RDONLY, 0); err == nil {
			err = unix.Fchmod(fd, 0o755)
		}
	case "linkfd":
		var fd int
		if fd, err = unix.Open(a[1], unix.O_RDONLY, 0); err == nil {
			err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, a[2], unix.AT_SYMLINK_FOLLOW)
		}
	case "acl":
		err = unix.Setxattr(a[1], "system.posix_acl_access", anACL(), 0)
	default:
		err = actMore(a)
	}
	return err
}

// ownProcFiles tries to have the supervisor open files of its own for the tool.
func ownProcFiles() int {
	boss := os.Getenv("GUARD_SUPERVISOR")
	code := 1
	for _, p := range []string{"/mem", "/oom_score_adj", "/cwd/zz", "/root" + mustWd() + "/zz", "/fd/1", "/task/" + boss + "/comm"} {
		if fd, err := unix.Open("/proc/"+boss+p, unix.O_WRONLY|unix.O_CREAT, 0o600); err == nil {
			fmt.Println("UNEXPECTED: opened", p)
			unix.Close(fd)
			code = 0
		}
	}
	return code
}

func mustWd() string {
	d, _ := os.Getwd()
	return d
}

// rawOpen opens the string at address p for writing.
func rawOpen(p unsafe.Pointer, flags int) (int, unix.Errno) {
	at := unix.AT_FDCWD
	r, _, e := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), uintptr(p), uintptr(flags), 0o644, 0, 0)
	return int(r), e
}
