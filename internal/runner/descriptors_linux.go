package runner

import (
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

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
