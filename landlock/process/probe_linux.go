//go:build linux && (amd64 || arm64)

package process

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/landlock"
)

var errNotDirectory = errors.New("the rule grants only what a directory has, and this is none")

// probe is an act that worked before the restriction, changes nothing, and that the ruleset
// forbids: if it is then refused, the ruleset is in force on the thread that tries it.
type probe struct {
	act    string
	try    func() error
	refuse unix.Errno
	fds    []int
}

// check tries the act and returns a [*CheckError] unless it is refused as Landlock refuses it.
func (p *probe) check() error {
	if err := p.try(); err != p.refuse {
		return &CheckError{Act: p.act, Err: err}
	}
	return nil
}

func (p *probe) close() {
	for _, fd := range p.fds {
		unix.Close(fd)
	}
}

// findProbe returns the first probe that r forbids and that works now, or a [*CheckError] without an act.
func findProbe(r landlock.Ruleset) (*probe, error) {
	for _, make := range []func(landlock.Ruleset) *probe{listRoot, writeNull, bindAny, reachOut} {
		p := make(r)
		if p == nil {
			continue
		}
		if p.try() == nil {
			return p, nil
		}
		p.close()
	}
	return nil, &CheckError{}
}

// listRoot opens "/" through a descriptor that only names it.
func listRoot(r landlock.Ruleset) *probe {
	if !forbids(r, landlock.FSReadDir, "/") {
		return nil
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return &probe{act: "list /", refuse: unix.EACCES, fds: []int{root}, try: func() error {
		return openAt(root, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	}}
}

// writeNull opens /dev/null for writing.
func writeNull(r landlock.Ruleset) *probe {
	if !forbids(r, landlock.FSWriteFile, "/dev/null", "/dev", "/") {
		return nil
	}
	return &probe{act: "open /dev/null for writing", refuse: unix.EACCES, try: func() error {
		return openAt(unix.AT_FDCWD, "/dev/null", unix.O_WRONLY)
	}}
}

func openAt(dir int, path string, flags int) error {
	fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// bindAny binds a TCP socket to a port of the kernel's choice.
func bindAny(r landlock.Ruleset) *probe {
	if r.HandledNet()&landlock.NetBindTCP == 0 {
		return nil
	}
	for _, rule := range r.Ports {
		if rule.Port == 0 && rule.Access&landlock.NetBindTCP != 0 {
			return nil
		}
	}
	return &probe{act: "bind a TCP socket", refuse: unix.EACCES, try: func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}}
}

// reachOut connects to an abstract socket that was made before the restriction and so is outside of the domain.
func reachOut(r landlock.Ruleset) *probe {
	if r.Scoped()&landlock.ScopeAbstractUnixSocket == 0 {
		return nil
	}
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	p := &probe{act: "connect to an abstract socket outside", refuse: unix.EPERM, fds: []int{listener}}
	if err := unix.Bind(listener, &unix.SockaddrUnix{}); err != nil { // the kernel chooses a free abstract name
		p.close()
		return nil
	}
	address, err := unix.Getsockname(listener)
	name, ok := address.(*unix.SockaddrUnix)
	if err != nil || !ok {
		p.close()
		return nil
	}
	p.try = func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, &unix.SockaddrUnix{Name: name.Name}) // one for each call, which writes to it
	}
	return p
}

// forbids reports whether r handles the right and no rule grants it on any of the paths: a
// file and the directories it is in. It compares the files themselves, since a rule may lead
// to them by a link or a mount.
func forbids(r landlock.Ruleset, right landlock.AccessFS, paths ...string) bool {
	if r.HandledFS()&right == 0 {
		return false
	}
	for _, path := range paths {
		file, err := os.Stat(path)
		if err != nil {
			return false
		}
		for _, rule := range r.Paths {
			granted, err := os.Stat(rule.Path)
			if err != nil || rule.Access&right != 0 && os.SameFile(file, granted) {
				return false
			}
		}
	}
	return true
}
