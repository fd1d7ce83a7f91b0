package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// A run needs three processes: the test; a supervisor, which serves; and the tool, which installs the filter on
// itself, passes the listener to the supervisor and becomes what is to be run. All are this test binary.

const roleEnv = "GUARD_ROLE"

// noRaceSleep keeps a program built with -race from sleeping for a second as it exits.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

type job struct {
	Rules  Rules
	Argv   []string
	Dir    string
	Env    []string
	UID    uint32
	Groups []uint32 // further ones
	Silent bool     // install no filter: the same run without a supervisor
	Layer  string   // an overlay of this directory lies on Dir, in a mount namespace of the run's; "": none does
	Made   string   // the file of the record of what tools have made; "": there is none

	NoLease bool // the supervisor gets no leases, as on NFS
	NoCalls bool // it gets no calls into other processes, as in a container without CAP_SYS_PTRACE

	FileSize uint64 // the longest file that it can write, as where a disk is full; 0: any
}

func TestMain(m *testing.M) {
	role, name, _ := strings.Cut(os.Getenv(roleEnv), ":")
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); role == "" && err == nil {
		if _, err := unix.PidfdGetfd(fd, 0, 0); err == unix.EPERM { // as Docker's filter has it without CAP_SYS_PTRACE
			os.Setenv("SUPERVISOR_WITHOUT_CALLS", "1")
		}
		unix.Close(fd)
	}
	switch role {
	case "supervise":
		os.Exit(superviseRole())
	case "tool":
		toolRole()
	case "act":
		os.Exit(actRole(name))
	}
	dir, err := os.MkdirTemp("", "supervisor")
	if err != nil {
		die("temporary directory", err)
	}
	code := 99
	if err = copySelf(dir); err == nil {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// copySelf puts this binary where an ordinary user may run it, since go test does not.
func copySelf(dir string) error {
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(dir+"/self", b, 0o755), os.Chmod(dir+"/self", 0o755), os.Setenv("GUARD_SELF", dir+"/self"))
}

// noOverlay is the status of a run for which no overlay could be mounted.
const noOverlay = 98

func die(what string, err error) {
	fmt.Fprintln(os.Stderr, "supervisor test:", what, err)
	os.Exit(99)
}

func superviseRole() int {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv("GUARD_JOB")), &j); err != nil {
		die("job", err)
	}
	if j.Layer != "" {
		options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", j.Layer)
		if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("overlay", j.Dir, "overlay", 0, options)); err != nil {
			fmt.Fprintln(os.Stderr, "overlay:", err)
			os.Exit(noOverlay)
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		die("socketpair", err)
	}
	tool := exec.Command("/proc/self/exe")
	tool.Env = append(os.Environ(), roleEnv+"=tool")
	tool.Stdin, tool.Stdout, tool.Stderr = os.Stdin, os.Stdout, os.Stderr
	tool.Dir = j.Dir
	tool.ExtraFiles = []*os.File{os.NewFile(uintptr(pair[1]), "pair")}
	if err := tool.Start(); err != nil {
		die("tool", err)
	}
	unix.Close(pair[1])
	if !j.Silent {
		listener := receiveFD(pair[0])
		if j.NoLease {
			refuse(unix.EINVAL, unix.SYS_FCNTL, 1, unix.F_SETLEASE)
		}
		if j.NoCalls {
			for _, nr := range []uint32{unix.SYS_PROCESS_VM_READV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PTRACE} {
				refuse(unix.EPERM, nr, 0, 0)
			}
		}
		if j.FileSize > 0 {
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: j.FileSize, Max: j.FileSize}); err != nil {
				die("limit", err)
			}
		}
		go serveAll(listener, &j.Rules, j.Made)
	}
	err = tool.Wait()
	if ws, ok := tool.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		die("tool died", err)
	}
	return tool.ProcessState.ExitCode()
}

// refuse has a call fail in this process, where the low word of an argument is value; 0: always.
func refuse(errno unix.Errno, nr uint32, arg, value uint32) {
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: nr},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16 + 8*arg},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: value},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if value == 0 {
		prog[3].Jf = 0
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		die("no_new_privs", err)
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog))); errno != 0 {
		die("seccomp", errno)
	}
}

func receiveFD(sock int) int {
	oob := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(sock, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		die("recvmsg", err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		die("no descriptor", err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		die("rights", err)
	}
	return fds[0]
}

func serveAll(listener int, rules *Rules, made string) {
	blob, err := rules.Encode()
	if err != nil {
		die("rules", err)
	}
	if err := Check(blob); err != nil {
		die("state", err)
	}
	s := new(State)
	Begin(s, blob, nil)
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		die("proc", err)
	}
	if r := Prepare(s, proc, listener); r < 0 {
		die("prepare", syscall.Errno(-r))
	}
	if made != "" {
		fd, err := unix.Open(made, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			die("record", err)
		}
		b, err := unix.Mmap(fd, 0, int(MadeBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			die("map the record", err)
		}
		ShareMade(s, uintptr(unsafe.Pointer(&b[0])), fd)
	}
	if rules.Watch {
		b, err := unix.Mmap(-1, 0, int(TableBytes(s)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		if err != nil {
			die("mmap", err)
		}
		Record(s, uintptr(unsafe.Pointer(&b[0])))
	}
	for {
		timeout := -1
		if Pending(s) > 0 {
			timeout = 2
		}
		p := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		n, err := unix.Poll(p, timeout)
		if err != nil && err != unix.EINTR {
			die("poll", err)
		}
		if n > 0 && p[0].Revents&unix.POLLIN != 0 {
			if r := Serve(s); r < 0 {
				die("serve", syscall.Errno(-r))
			}
		} else if n > 0 {
			return
		}
		Retry(s)
	}
}

func toolRole() {
	runtime.LockOSThread()
	var j job
	if err := json.Unmarshal([]byte(os.Getenv("GUARD_JOB")), &j); err != nil {
		die("job", err)
	}
	argv0, err := exec.LookPath(j.Argv[0])
	if err != nil {
		die("tool", err)
	}
	if !j.Silent {
		installFilter(&j.Rules)
	}
	env := append([]string{"SELF=" + os.Getenv("GUARD_SELF"), fmt.Sprintf("GUARD_SUPERVISOR=%d", os.Getppid()), roleEnv + "=none", noRaceSleep, "PATH=" + os.Getenv("PATH"), "HOME=" + j.Dir, "GIT_TEMPLATE_DIR=",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "LC_ALL=C.UTF-8", kerneltest.AllEnv + "=" + os.Getenv(kerneltest.AllEnv)}, j.Env...)
	if err := unix.Exec(argv0, j.Argv, env); err != nil {
		die("exec", err)
	}
}

func installFilter(r *Rules) {
	prog, err := FilterOf(runtime.GOARCH, r)
	if err != nil {
		die("filter", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		die("no_new_privs", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: (*unix.SockFilter)(unsafe.Pointer(&prog[0]))}
	const newListener, waitKillable = 8, 32
	fd, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, 1, newListener|waitKillable, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		die("seccomp", errno)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(fd)), nil, 0); err != nil {
		die("sendmsg", err)
	}
	unix.Close(int(fd))
	unix.Close(3)
}

// usesGit finds git among a script's commands.
var usesGit = regexp.MustCompile(`(^|[\s;&|(])git +-?[a-z]`)

// run carries the job out and returns the tool's output and exit code.
func run(t testing.TB, j job) (string, int) {
	t.Helper()
	if os.Getenv("SUPERVISOR_WITHOUT_CALLS") != "" && !j.NoCalls { // every test of the package as in a container
		j.NoCalls, j.Rules.MemFile = true, true
	}
	if usesGit.MatchString(strings.Join(j.Argv, " ")) {
		kerneltest.Need(t, kerneltest.Command("git"))
	}
	if len(j.Argv) > 0 && j.Argv[0] == "python3" {
		kerneltest.Need(t, kerneltest.Command("python3"))
	}
	b, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	// The real supervisor blocks every signal; Go's own, sent to the one here, would interrupt what it waits for.
	cmd.Env = append(os.Environ(), roleEnv+"=supervise", "GUARD_JOB="+string(b), "GODEBUG=asyncpreemptoff=1")
	cmd.Dir = "/"
	if j.UID != self {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: j.UID, Gid: j.UID, Groups: j.Groups}}
	}
	if j.Layer != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if self != 0 {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(self), HostID: int(self), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
		}
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
