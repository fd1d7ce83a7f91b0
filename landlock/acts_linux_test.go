//go:build linux && (amd64 || arm64)

package landlock

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// do does the act on the calling thread.
func (a act) do() error {
	switch a.Do {
	case "read":
		return open(a.A, unix.O_RDONLY)
	case "list":
		return open(a.A, unix.O_RDONLY|unix.O_DIRECTORY)
	case "write":
		return open(a.A, unix.O_WRONLY)
	case "create":
		return open(a.A, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	case "truncate":
		return unix.Truncate(a.A, 1)
	case "exec":
		return execute(a.A)
	case "mkdir":
		return unix.Mkdir(a.A, 0o777)
	case "rmdir":
		return unix.Rmdir(a.A)
	case "unlink":
		return unix.Unlink(a.A)
	case "symlink":
		return unix.Symlink("target", a.A)
	case "mkfifo":
		return unix.Mknod(a.A, unix.S_IFIFO|0o666, 0)
	case "mksock":
		return unix.Mknod(a.A, unix.S_IFSOCK|0o666, 0)
	case "mkchar": // a whiteout, which needs no privilege
		return unix.Mknod(a.A, unix.S_IFCHR|0o666, 0)
	case "mkblock":
		return unix.Mknod(a.A, unix.S_IFBLK|0o666, int(unix.Mkdev(7, 0)))
	case "rename":
		return unix.Rename(a.A, a.B)
	case "link":
		return unix.Link(a.A, a.B)
	case "chmod":
		return unix.Chmod(a.A, 0o770)
	case "stat":
		var st unix.Stat_t
		return unix.Stat(a.A, &st)
	case "ioctl":
		return ioctl(a.A)
	case "opath then list":
		return openAt(a.A)
	case "detached then restrict":
		return detached(a)
	case "bind":
		return bind(a.N)
	case "connect":
		return connect(&unix.SockaddrInet4{Port: a.N, Addr: [4]byte{127, 0, 0, 1}}, unix.AF_INET)
	case "connect unix":
		return connect(&unix.SockaddrUnix{Name: a.A}, unix.AF_UNIX)
	case "signal":
		return unix.Kill(a.target(), 0)
	case "ptrace":
		return seize(a.target())
	case "child":
		return a.child(nil)
	case "signal child", "ptrace child":
		return a.child(func(pid int) error {
			return act{Do: strings.TrimSuffix(a.Do, " child"), N: pid}.do()
		})
	}
	return errors.New("no such act: " + a.Do)
}

// target is the process to act on: N, or the parent.
func (a act) target() int {
	if a.N == 0 {
		return os.Getppid()
	}
	return a.N
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o666)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// openAt opens "." beneath a descriptor that only names path, as the check of a restriction does.
func openAt(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open with O_PATH: %v", err)
	}
	defer unix.Close(fd)
	return openDot(fd)
}

func openDot(fd int) error {
	dot, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(dot)
	}
	return err
}

// detached clones the tree at A to a mount that is attached nowhere, restricts the thread, and lists the clone.
func detached(a act) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, a.A, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open_tree: %v", err)
	}
	if err := openDot(fd); err != nil {
		return fmt.Errorf("before the restriction: %v", err)
	}
	for _, r := range a.Job.Rulesets {
		if err := restrict(r); err != nil {
			return fmt.Errorf("restrict: %v", err)
		}
	}
	return openDot(fd)
}

func execute(path string) error {
	cmd := exec.Command(path)
	cmd.Env = []string{jobEnv + `={"Exit":true}`, noRaceSleep}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr // nil would open /dev/null
	return cmd.Run()
}

// ioctl asks a pseudo terminal for its number, which none of the commands that are always allowed do.
func ioctl(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open: %v", err)
	}
	defer unix.Close(fd)
	_, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
	return err
}

func bind(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("socket: %v", err)
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func connect(to unix.Sockaddr, family int) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %v", err)
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// seize becomes pid's tracer without stopping it, and lets go.
func seize(pid int) error {
	const ptraceSeize = 0x4206
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, ptraceSeize, uintptr(pid), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil // the kernel detaches when this thread ends
}

// child runs the act's job in a child of this process, inside its domain, and returns the
// child's first outcome that is not ok; or, with on, what on gives for the child while it
// waits with its rulesets on.
func (a act) child(on func(pid int) error) error {
	j := *a.Job
	j.Wait = on != nil
	cmd := self(j)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start: %v", err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("child: %v", err)
	}
	if on != nil {
		err = on(cmd.Process.Pid)
		in.Close()
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("child: %v", err)
	}
	var outcomes []string
	if err := json.Unmarshal(line, &outcomes); err != nil {
		return err
	}
	for _, o := range outcomes {
		if o != "ok" {
			return errors.New(o)
		}
	}
	return nil
}
