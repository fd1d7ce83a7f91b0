package sbpl

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// An act is something that a tool tries, once inside, and what a profile is asked
// about it: all of the questions have to be answered with yes.
type act struct {
	name string
	asks [][2]string // operation and argument
	do   func() error
}

// A world is what the acts are tried on: a tree of the host, and what listens there.
type world struct {
	Root    string // of the tree
	TCP     int    // a port of the host's loopback on which somebody listens
	UDP     int
	Free    int // another
	Outside int // a process of the same user
}

// places are the directories of the tree in which all acts on files are tried.
var places = []string{"ws", "ws/dir", "ws/.git", "ws/.git/hooks", "ws/ro", "ws/ro/rw", "ws/ro/rw/deep", "home", "home/.ssh", "home/project", "home/project/secret", "other", "tmp", "link-target"}

// files are what each of them has.
var files = []string{"file", "read", "cut", "gone", "moved", "mode", "times", "attr", "linked", ".env", "notes.key"}

// fileActs are the acts on the files of one directory.
func fileActs(dir string) []act {
	at := func(name string) string { return dir + "/" + name }
	var st unix.Stat_t
	acts := []act{
		{"list", ask("file-read-data", dir), func() error {
			fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.ReadDirent(fd, make([]byte, 4096))
			return err
		}},
		{"stat the directory", ask("file-read-metadata", dir), func() error { return unix.Lstat(dir, &st) }},
		{"create", ask("file-write-create", at("new"), "file-write-data", at("new")), func() error { return open(at("new"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) }},
		{"create a key", ask("file-write-create", at("new.key"), "file-write-data", at("new.key")), func() error { return open(at("new.key"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) }},
		{"make a directory", ask("file-write-create DIRECTORY", at("made")), func() error { return unix.Mkdir(at("made"), 0o755) }},
		{"make a symbolic link", ask("file-write-create SYMLINK", at("symlink")), func() error { return unix.Symlink("file", at("symlink")) }},
		{"make a fifo", ask("file-write-create FIFO", at("fifo")), func() error { return unix.Mkfifo(at("fifo"), 0o644) }},
		{"make a hard link", ask("file-link", at("linked"), "file-read-metadata", at("linked"), "file-write-create", at("second")), func() error { return unix.Link(at("linked"), at("second")) }},
		{"remove", ask("file-write-unlink", at("gone")), func() error { return unix.Unlink(at("gone")) }},
		{"rename", ask("file-write-unlink", at("moved"), "file-write-create", at("moved.new")), func() error { return unix.Rename(at("moved"), at("moved.new")) }},
		{"change the directory's mode", ask("file-write-mode", dir), func() error { return unix.Chmod(dir, 0o755) }},
		{"execute", ask("process-fork", "", "process-exec", at("program"), "file-read-data", at("program"), "file-read-metadata", at("program")), func() error { return execute(at("program")) }},
	}
	for _, name := range []string{"file", ".env", "notes.key"} {
		acts = append(acts,
			act{"read " + name, ask("file-read-data", at(name), "file-read-metadata", at(name)), func() error { return open(at(name), unix.O_RDONLY) }},
			act{"stat " + name, ask("file-read-metadata", at(name)), func() error { return unix.Lstat(at(name), &st) }},
			act{"write " + name, ask("file-write-data", at(name)), func() error { return open(at(name), unix.O_WRONLY) }},
		)
	}
	acts = append(acts, statusActs(at)...)
	for i := range acts {
		acts[i].name += " in " + dir
	}
	return acts
}

// ask pairs operations, with the kind of thing that they make, and arguments.
func ask(pairs ...string) (out [][2]string) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, [2]string{pairs[i], pairs[i+1]})
	}
	return out
}

// open opens a file and closes it again.
func open(p string, flags int) error {
	fd, err := unix.Open(p, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// statusActs change files and what is known of them.
func statusActs(at func(name string) string) []act {
	return []act{
		{"truncate", ask("file-write-data", at("cut")), func() error { return unix.Truncate(at("cut"), 0) }},
		{"chmod", ask("file-write-mode", at("mode")), func() error { return unix.Chmod(at("mode"), 0o640) }},
		{"chown", ask("file-write-owner", at("mode")), func() error { return unix.Chown(at("mode"), os.Getuid(), os.Getgid()) }},
		{"utimes", ask("file-write-times", at("times")), func() error { return unix.UtimesNanoAt(unix.AT_FDCWD, at("times"), make([]unix.Timespec, 2), 0) }},
		{"write a fifo", ask("file-write-data", at("pipe"), "file-read-data", at("pipe"), "file-read-metadata", at("pipe")), func() error { return open(at("pipe"), unix.O_RDWR|unix.O_NONBLOCK) }},
		{"set an attribute", ask("file-write-xattr", at("attr")), func() error { return unix.Setxattr(at("attr"), "user.b", []byte("1"), 0) }},
		{"read an attribute", ask("file-read-xattr", at("attr"), "file-read-metadata", at("attr"), "file-read-data", at("attr")), func() error {
			_, err := unix.Getxattr(at("attr"), "user.a", make([]byte, 8))
			return err
		}},
		{"bind a local socket", ask("network-bind", at("sock"), "file-write-create SOCKET", at("sock")), func() error {
			return withSocket(unix.AF_UNIX, unix.SOCK_STREAM, func(fd int) error { return unix.Bind(fd, &unix.SockaddrUnix{Name: at("sock")}) })
		}},
	}
}

// dirActs move a directory itself, and back.
func dirActs(dir string) []act {
	away := dir + ".away"
	up := dir[:strings.LastIndexByte(dir, '/')]
	return []act{{"put a decoy in the place of " + dir, [][2]string{{"file-write-unlink", up}, {"file-write-create", up + ".away"}, {"file-write-create", up}, {"file-write-create", dir}}, func() error {
		if err := unix.Rename(up, up+".away"); err != nil {
			return err
		}
		err1 := unix.Mkdir(up, 0o755)
		err2 := unix.Mkdir(dir, 0o755)
		unix.Rmdir(dir)
		unix.Rmdir(up)
		if err := unix.Rename(up+".away", up); err != nil {
			return err
		}
		if err1 != nil {
			return err1
		}
		return err2
	}}, {"move " + dir, [][2]string{{"file-write-unlink", dir}, {"file-write-create", away}}, func() error {
		if err := unix.Rename(dir, away); err != nil {
			return err
		}
		return unix.Rename(away, dir)
	}}}
}

// socketActs are about the network.
func socketActs(w world) []act {
	local := func(port int) string { return "localhost:" + strconv.Itoa(port) }
	loopback := func(port int) *unix.SockaddrInet4 {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	}
	tcp := func(f func(fd int) error) error { return withSocket(unix.AF_INET, unix.SOCK_STREAM, f) }
	udp := func(f func(fd int) error) error { return withSocket(unix.AF_INET, unix.SOCK_DGRAM, f) }
	local2 := func(name string, kind int) error {
		return withSocket(unix.AF_UNIX, kind, func(fd int) error { return unix.Connect(fd, &unix.SockaddrUnix{Name: name}) })
	}
	return []act{
		{"connect to a port of the host", [][2]string{{"network-outbound", local(w.TCP)}}, func() error {
			return tcp(func(fd int) error { return unix.Connect(fd, loopback(w.TCP)) })
		}},
		{"send a datagram", [][2]string{{"network-outbound", "udp:" + local(w.UDP)}}, func() error {
			return udp(func(fd int) error { return unix.Sendto(fd, []byte("x"), 0, loopback(w.UDP)) })
		}},
		{"bind a port", [][2]string{{"network-bind", local(w.Free)}}, func() error {
			return tcp(func(fd int) error { return unix.Bind(fd, loopback(w.Free)) })
		}},
		{"listen", [][2]string{{"network-bind", local(w.Free)}, {"network-inbound", local(w.Free)}}, func() error {
			return tcp(func(fd int) error {
				if err := unix.Bind(fd, loopback(w.Free)); err != nil {
					return err
				}
				return unix.Listen(fd, 1)
			})
		}},
		{"connect to a local socket", [][2]string{{"network-outbound", w.Root + "/run/stream"}}, func() error { return local2(w.Root+"/run/stream", unix.SOCK_STREAM) }},
		{"connect to a local datagram socket", [][2]string{{"network-outbound", w.Root + "/run/datagram"}}, func() error { return local2(w.Root+"/run/datagram", unix.SOCK_DGRAM) }},
		{"send to a local datagram socket", [][2]string{{"network-outbound", w.Root + "/run/datagram"}}, func() error {
			return withSocket(unix.AF_UNIX, unix.SOCK_DGRAM, func(fd int) error {
				return unix.Sendmsg(fd, []byte("x"), nil, &unix.SockaddrUnix{Name: w.Root + "/run/datagram"}, 0)
			})
		}},
		{"connect to another local socket", [][2]string{{"network-outbound", w.Root + "/other/stream"}}, func() error { return local2(w.Root+"/other/stream", unix.SOCK_STREAM) }},
	}
}

// processActs are about processes, and about what lies outside of the tree.
func processActs(w world) []act {
	return []act{
		{"signal itself", [][2]string{{"signal", "self"}}, func() error { return unix.Kill(os.Getpid(), 0) }},
		{"signal a process outside", [][2]string{{"signal", "others"}}, func() error { return unix.Kill(w.Outside, 0) }},
		{"fork", [][2]string{{"process-fork", ""}}, fork},
		{"read /etc/hostname", [][2]string{{"file-read-data", "/etc/hostname"}, {"file-read-metadata", "/etc/hostname"}}, func() error {
			_, err := os.ReadFile("/etc/hostname")
			return err
		}},
		{"write beside the tree", [][2]string{{"file-write-create", w.Root + ".beside"}, {"file-write-unlink", w.Root + ".beside"}}, func() error {
			if err := unix.Mkdir(w.Root+".beside", 0o755); err != nil {
				return err
			}
			return unix.Rmdir(w.Root + ".beside")
		}},
		{"list /", [][2]string{{"file-read-data", "/"}}, func() error {
			_, err := os.ReadDir("/")
			return err
		}},
		{"list /usr", [][2]string{{"file-read-data", "/usr"}}, func() error {
			_, err := os.ReadDir("/usr")
			return err
		}},
		{"stat /usr/bin", [][2]string{{"file-read-metadata", "/usr/bin"}}, func() error {
			_, err := os.Lstat("/usr/bin")
			return err
		}},
	}
}

// allActs are the table, in an order in which no act takes away what another needs.
func allActs(w world) []act {
	var acts, last []act
	for _, p := range places {
		acts = append(acts, fileActs(w.Root+"/"+p)...)
		own := dirActs(w.Root + "/" + p)
		if !strings.Contains(p, "/") { // around it is the tree itself, in which the actor is
			own = own[1:]
		}
		last = append(own, last...)
	}
	return slices.Concat(acts, socketActs(w), processActs(w), last)
}

func withSocket(domain, kind int, f func(fd int) error) error {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

// fork makes a process that ends at once.
func fork() error {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	if errno != 0 {
		return errno
	}
	_, err := syscall.Wait4(int(pid), nil, 0, nil)
	return err
}

// execute starts a program and waits for it.
func execute(p string) error {
	pid, err := syscall.ForkExec(p, []string{beActor, "end"}, &syscall.ProcAttr{Env: []string{}})
	if err != nil {
		return err
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

// actor tries everything and prints what came of it: an errno for each act, 0 if
// it was done.
func actor(args []string) int {
	if len(args) == 1 && args[0] == "end" {
		return 0
	}
	if len(args) == 1 && args[0] == "copies" {
		return executeCopies()
	}
	var w world
	if err := json.Unmarshal([]byte(args[0]), &w); err != nil {
		return 2
	}
	var b strings.Builder
	for _, a := range allActs(w) {
		errno := syscall.Errno(0)
		if err := a.do(); err != nil {
			errno = syscall.EIO
			if e, ok := unwrap(err); ok {
				errno = e
			}
		}
		fmt.Fprintf(&b, "%d %s\n", int(errno), a.name)
	}
	os.Stdout.WriteString(b.String())
	return 0
}

func unwrap(err error) (syscall.Errno, bool) {
	for err != nil {
		if e, ok := err.(syscall.Errno); ok {
			return e, true
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return 0, false
		}
		err = u.Unwrap()
	}
	return 0, false
}
