package runner

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// checkTool finds out what execve would say where that can be known before
// anything is started.
func (r *Run) checkTool() error {
	fail := func(err error) error { return &fs.PathError{Op: "fork/exec", Path: r.path, Err: err} }
	if r.dir != "" {
		// os/exec's order: the directory is entered before the tool is looked up;
		// and its words: it looks at the directory itself unless SysProcAttr is set.
		info, err := os.Stat(r.dir)
		var errno syscall.Errno
		switch {
		case errors.As(err, &errno) && r.cmd.SysProcAttr == nil:
			return &fs.PathError{Op: "chdir", Path: r.dir, Err: errno}
		case err != nil:
			return fail(errno)
		case !info.IsDir():
			return fail(syscall.ENOTDIR)
		case /* no other user, who may enter others */ (r.cmd.SysProcAttr == nil || r.cmd.SysProcAttr.Credential == nil) && unix.Faccessat(unix.AT_FDCWD, r.dir, unix.X_OK, unix.AT_EACCESS) == unix.EACCES:
			return fail(syscall.EACCES)
		}
	}
	if r.function != "" {
		return r.checkDir() // its file is in memory
	}
	p := inDir(r.dir, r.path)
	info, err := os.Stat(p)
	var errno syscall.Errno
	if errors.As(err, &errno) && !r.sandbox.shows(p) {
		return fail(errno)
	}
	// The last tool that the policy shows is remembered: most runs have the same, whose links would be read each time. Where a link has changed since
	// and leads to the same file by another way, execve(2) says whether the tool is there.
	tool, last := shownTool{path: p}, r.sandbox.lastTool.Load()
	if err == nil {
		st := info.Sys().(*syscall.Stat_t)
		tool.dev, tool.ino = uint64(st.Dev), st.Ino
	}
	known := err == nil && last != nil && *last == tool
	if err == nil && !known && !r.sandbox.shows(p) {
		return &policy.PolicyError{Field: "Path", Value: r.path, Problem: "the policy does not show the tool", Remedy: "add it, or its directory, to Files.Read", Err: fs.ErrNotExist}
	}
	if err == nil && !known {
		r.sandbox.lastTool.Store(&tool)
	}
	if err == nil && (info.IsDir() || info.Mode().Perm()&0o111 == 0) {
		return fail(syscall.EACCES)
	}
	if err := r.checkDir(); err != nil || r.quiet {
		return err // a method of ours hears what execve says inside
	}
	return r.sandbox.checkExecutable(r.cmd, r.dir, r.path)
}

// checkDescriptors refuses to hand over what leads out of the sandbox.
//
// A directory lies in the harness's own tree of mounts, and ".." leads from it to
// everything (openat(2), as in CVE-2024-21626), but where Landlock holds files. A
// socket belongs for ever to the network in which it was made, and can be
// disconnected and connected anew (connect(2), AF_UNSPEC), a listening one too.
func (s *Sandbox) checkDescriptors(cmd *exec.Cmd) error {
	files := map[string]any{"Stdin": cmd.Stdin, "Stdout": cmd.Stdout, "Stderr": cmd.Stderr}
	for i, f := range cmd.ExtraFiles {
		files[errtext.Indexed("ExtraFiles", i)] = f
	}
	for field, v := range files {
		f, ok := v.(*os.File)
		if !ok || f == nil {
			continue
		}
		info, err := f.Stat()
		switch {
		case err != nil:
		case info.IsDir() && !s.holdsDirectories():
			return &policy.PolicyError{Field: field, Value: f.Name(), Problem: "is a directory, from which a tool can leave a sandbox without Landlock", Remedy: "grant the directory in the Policy instead", Err: syscall.EINVAL}
		case info.Mode()&os.ModeSocket != 0 && !s.holdsSocket(f):
			return &policy.PolicyError{Field: field, Value: f.Name(), Problem: "is a socket of the harness's network, which a tool can connect to anywhere",
				Remedy: "give an io.Reader or io.Writer that is no *os.File, have the tool listen itself (Network.Listen), or pass a connected UNIX socket", Err: syscall.EINVAL}
		}
	}
	return nil
}

func (s *Sandbox) holdsDirectories() bool {
	return s.Plan.Uses(plan.Landlock) || !s.Plan.Namespaces.Mount
}

// holdsSocket reports whether a socket leads no further than it does already. One of
// AF_UNIX is that once it is connected or listens, unless it sends datagrams; and
// where paths are the sandbox's own and Landlock keeps to its own abstract names.
func (s *Sandbox) holdsSocket(f *os.File) bool {
	p := s.Policy
	if p.Network.Host || slices.Contains(p.Open, policy.BoundNetwork) {
		return true
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	held := false
	err = raw.Control(func(fd uintptr) {
		domain, err1 := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		kind, err2 := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
		if err1 != nil || err2 != nil || domain != unix.AF_UNIX {
			return
		}
		listens, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		_, alone := unix.Getpeername(int(fd))
		settled := kind != unix.SOCK_DGRAM && (err == nil && listens == 1 || alone == nil)
		held = settled || s.Plan.Namespaces.Mount && s.Plan.Uses(plan.LandlockScope)
	})
	return err == nil && held
}

// An unexecutable is what execve(2) would say of a tool, found out without executing it:
// an embedded command's Start has no other way to return it, and ENOENT alone does not say
// that the policy hides an interpreter.
type unexecutable struct {
	errno syscall.Errno
	// hidden is an interpreter that the host has and the policy does not show.
	hidden string
}

// maxInterpreters is how many scripts in a row the kernel
// takes as interpreters (exec_binprm of fs/exec.c).
const maxInterpreters = 5

// checkExecutable looks at a tool as the kernel will. It knows missing files and
// interpreters, permissions, and formats; the limits on arguments and what security
// modules say it does not know.
func (s *Sandbox) checkExecutable(cmd *exec.Cmd, dir, path string) error {
	u := s.judgeExecutable(cmd, dir, inDir(dir, path), maxInterpreters)
	switch {
	case u.hidden != "":
		return &policy.PolicyError{Field: "Path", Value: path, Problem: "is executed by " + u.hidden + ", which the policy does not show",
			Remedy: "add that file, or its directory, to Files.Read", Err: fs.ErrNotExist}
	case u.errno != 0:
		return &fs.PathError{Op: "fork/exec", Path: path, Err: u.errno}
	}
	return nil
}

func (s *Sandbox) judgeExecutable(cmd *exec.Cmd, dir, p string, depth int) unexecutable {
	if abs, err := filepath.Abs(p); err == nil {
		p = abs
	}
	if e, ok := s.Tree.Find(p); ok && e.Kind == pathrule.Make {
		return unexecutable{} // the host's file, if there is one, is another
	}
	info, err := os.Stat(p)
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return unexecutable{errno: errno}
	case err != nil:
		return unexecutable{}
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return unexecutable{errno: syscall.EACCES}
	case !s.shows(p):
		return unexecutable{hidden: p}
	case /* no other user, who may execute other files */ (cmd.SysProcAttr == nil || cmd.SysProcAttr.Credential == nil) && unix.Faccessat(unix.AT_FDCWD, p, unix.X_OK, unix.AT_EACCESS) == unix.EACCES:
		return unexecutable{errno: syscall.EACCES}
	}
	f, err := regularfile.Open(p) // a tool may have exchanged it since
	if err != nil {
		return unexecutable{} // it can be executed without being read
	}
	defer f.Close()
	interpreter, known := readInterpreter(f)
	switch {
	case !known && foreignFormats():
	case !known:
		return unexecutable{errno: syscall.ENOEXEC}
	case interpreter == "":
	case depth == 0:
		return unexecutable{errno: syscall.ELOOP}
	default:
		if !filepath.IsAbs(interpreter) {
			interpreter = filepath.Join(dir, interpreter)
		}
		return s.judgeExecutable(cmd, dir, interpreter, depth-1)
	}
	return unexecutable{}
}

// inDir is the tool's path as os/exec takes it: relative to its directory.
func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// readInterpreter returns the program that the kernel executes for f: that of a
// script's first line or of an ELF file's PT_INTERP; "": the file itself. known is
// false if the kernel's own formats are none of f's.
func readInterpreter(f *os.File) (interpreter string, known bool) {
	head := make([]byte, 256) // BINPRM_BUF_SIZE
	n, _ := f.ReadAt(head, 0)
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		return scriptInterpreter(head[2:n])
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return elfInterpreter(f, head)
	}
	return "", false
}

// scriptInterpreter is load_script of fs/binfmt_script.c.
func scriptInterpreter(line []byte) (string, bool) {
	const blank = " \t"
	line, _, ended := bytes.Cut(line, []byte("\n"))
	text := strings.Trim(string(line), blank)
	text, _, _ = strings.Cut(text, "\x00")
	end := strings.IndexAny(text, blank)
	if end < 0 && !ended && len(line) >= 254 {
		return "", false // the name may go on
	}
	if end >= 0 {
		text = text[:end]
	}
	return text, text != ""
}

// elfInterpreter is the part of load_elf_binary (fs/binfmt_elf.c) that comes before
// anything is mapped. A file of 32 bits is not looked into.
func elfInterpreter(f *os.File, head []byte) (string, bool) {
	const (
		class64, executable, shared = 2, 2, 3
		programHeader, interp       = 56, 3
	)
	le := binary.LittleEndian
	kind, machine := le.Uint16(head[16:]), le.Uint16(head[18:])
	switch {
	case kind != executable && kind != shared:
		return "", false
	case head[4] != class64:
		return "", true
	case machine != map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH], le.Uint16(head[54:]) != programHeader:
		return "", false
	}
	headers := make([]byte, programHeader*int(le.Uint16(head[56:])))
	if _, err := f.ReadAt(headers, int64(le.Uint64(head[32:]))); err != nil || len(headers) == 0 || len(headers) > 65536 {
		return "", false
	}
	for ; len(headers) > 0; headers = headers[programHeader:] {
		if le.Uint32(headers) != interp {
			continue
		}
		size := le.Uint64(headers[32:])
		if size < 2 || size > unix.PathMax {
			return "", false
		}
		name := make([]byte, size)
		if _, err := f.ReadAt(name, int64(le.Uint64(headers[8:]))); err != nil || name[size-1] != 0 {
			return "", false
		}
		text, _, _ := strings.Cut(string(name), "\x00")
		return text, text != ""
	}
	return "", true
}

// foreignFormats reports whether the kernel has been taught further formats
// (binfmt_misc), or that cannot be known.
func foreignFormats() bool {
	entries, err := os.ReadDir("/proc/sys/fs/binfmt_misc")
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return len(entries) > 2 // register and status
}

// tooLong reports whether execve(2) refuses so many arguments: one of 128 KiB, or all
// of them and their pointers beyond a quarter of the stack's limit (bprm_stack_limits
// and copy_strings of fs/exec.c). The stage would be refused the same ones.
func tooLong(path string, argv, env []string) bool {
	const longest, atLeast, atMost = 32 * 4096, 128 << 10, 8 << 20 / 4 * 3
	total := uint64(len(path) + 1)
	for _, list := range [][]string{argv, env} {
		for _, s := range list {
			if len(s) >= longest {
				return true
			}
			total += uint64(len(s)) + 1 + 8
		}
	}
	if total <= atLeast {
		return false
	}
	limit := uint64(atMost)
	var stack unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_STACK, &stack) == nil {
		limit = max(min(limit, stack.Cur/4), atLeast)
	}
	return total > limit
}

// admitTo refuses a command that the session cannot take.
func (r *Run) admitTo(n *Session) error {
	if err := n.err(nil); err != nil {
		return err
	}
	if n.pause.on.Load() {
		return pausedError("starts no commands")
	}
	if a := r.cmd.SysProcAttr; a != nil && a.Credential != nil {
		return &policy.PolicyError{Field: "SysProcAttr.Credential", Problem: "is set, and a session has one user: its own", Remedy: "open a session as that user, or leave it unset"}
	}
	most := stage.MostSessionFiles - 3
	if r.function != "" {
		most -= 3 // function.Call.Files
	}
	if extra := len(r.cmd.ExtraFiles); extra > most {
		return &policy.PolicyError{Field: "ExtraFiles", Value: fmt.Sprint(extra), Problem: fmt.Sprintf("are more than the %d that a session can pass on", most), Remedy: "pass fewer"}
	}
	return nil
}
