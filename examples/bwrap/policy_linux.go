package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A layoutOf is a policy, and which step each of its entries comes from.
type layoutOf struct {
	policy sandbox.Policy
	steps  []step
}

// close closes the descriptors whose files are shown by now.
func (l layoutOf) close() {
	for _, e := range l.policy.Root.Entries {
		if b, ok := e.(rootfs.Bind); ok && b.File != nil {
			b.File.Close()
		}
	}
}

// policy is what the options ask for. It holds no more than bubblewrap does:
// what package sandbox would add is opened here, field by field.
func (o *options) policy() (l layoutOf, err error) {
	l.policy = sandbox.Policy{
		Env: sandbox.Env{AsGiven: true}, // bubblewrap passes the whole environment
		Root: &rootfs.Layout{
			Entries: []rootfs.Entry{},
			Nest:    true,
		},
		Network: sandbox.Network{Host: !o.net},
		Files:   sandbox.Files{Protect: policy.Protect{Off: true}},
		Open:    []sandbox.Bound{policy.BoundResources},
	}
	l.policy.Syscalls = seccomp.Off()
	if l.policy.Root.Namespaces, err = o.namespaces(); err != nil {
		return l, err
	}
	l.policy.Root.Privileges = o.privileges()
	for _, p := range o.locks {
		l.policy.Root.Locks = append(l.policy.Root.Locks, inside(p))
	}
	if err := o.filters(&l.policy); err != nil {
		return l, err
	}
	for _, s := range o.steps {
		entry, err := s.resolve()
		if err != nil {
			return l, err
		}
		if entry != nil {
			l.policy.Root.Entries, l.steps = append(l.policy.Root.Entries, entry), append(l.steps, s)
		}
	}
	return l, nil
}

func (o *options) namespaces() (n rootfs.Namespaces, err error) {
	n = rootfs.Namespaces{
		ShareUser: !o.user && o.userns < 0, SharePID: !o.pid, ShareIPC: !o.ipc, ShareUTS: !o.uts, ShareCgroup: !o.cgroup,
		MappedOutside: o.usernsBlock >= 0, NoUsers: o.noUsers, CheckNoUsers: o.checkNoUsers && !o.noUsers,
		AsPID1: o.asPID1, Joinable: true,
	}
	if o.hostname != nil {
		n.Hostname = *o.hostname
	}
	ids := rootfs.IDs{UID: o.uid, GID: o.gid}
	if o.user || o.userns >= 0 && ids != (rootfs.IDs{UID: os.Getuid(), GID: os.Getgid()}) {
		n.As = &ids
	}
	n.OneLevel = o.user && !o.noUsers && (ids == rootfs.IDs{} || !o.makesDev())
	for _, f := range []struct {
		fd   int
		file **os.File
		what string
	}{{o.userns, &n.User, "Joining specified user namespace failed"}, {o.userns2, &n.ThenUser, "Setting userns2 failed"}, {o.pidns, &n.PID, "Setting pidns failed"}} {
		if f.fd < 0 {
			continue
		}
		if *f.file, err = open(f.fd); err != nil {
			return n, because(err, "%s", f.what)
		}
	}
	return n, nil
}

func (o *options) makesDev() bool {
	for _, s := range o.steps {
		if _, ok := s.entry.(rootfs.Dev); ok {
			return true
		}
	}
	return false
}

func (o *options) privileges() (p rootfs.Privileges) {
	if os.Getuid() == 0 && !o.capsChosen {
		return rootfs.Privileges{All: true}
	}
	for c := range rootfs.Capability(64) {
		if o.caps>>c&1 != 0 {
			p.Capabilities = append(p.Capabilities, c)
		}
	}
	return p
}

// ownCapabilities are those in effect here.
func ownCapabilities() uint64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := bytes.Cut(text, []byte("\nCapEff:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, _ := strconv.ParseUint(string(line), 16, 64)
	return mask
}

func (o *options) filters(p *sandbox.Policy) error {
	programs := o.programs
	if o.seccompProgram >= 0 {
		code, err := readProgram(o.seccompProgram)
		if err != nil {
			return err
		}
		programs = [][]byte{code}
	}
	for _, code := range programs {
		program, err := seccomp.ParseProgram(code)
		if err != nil {
			return complain("Unable to set up system call filtering as requested: %v", err)
		}
		p.Programs = append(p.Programs, program)
	}
	return nil
}

// resolve finds the step's sources on the host and reads its data. It returns no
// entry for a source that need not exist and does not.
func (s step) resolve() (rootfs.Entry, error) {
	switch e := s.entry.(type) {
	case rootfs.Bind:
		if s.fd >= 0 {
			file, err := open(s.fd)
			if err != nil {
				return nil, because(err, "Can't find source path /proc/self/fd/%d", s.fd)
			}
			e.File = file
			return e, nil
		}
		path, err := real(e.Source)
		if e.Optional && errors.Is(err, syscall.ENOENT) {
			return nil, nil
		}
		e.Source = path
		return e, err
	case rootfs.Overlay:
		var err error
		if e.Upper, err = real(e.Upper); err == nil {
			e.Work, err = real(e.Work)
		}
		if err == nil {
			e.Layers, err = reals(e.Layers)
		}
		return e, err
	case rootfs.TmpOverlay:
		layers, err := reals(e.Layers)
		return rootfs.TmpOverlay{At: e.At, Layers: layers}, err
	case rootfs.ReadOnlyOverlay:
		layers, err := reals(e.Layers)
		return rootfs.ReadOnlyOverlay{At: e.At, Layers: layers}, err
	case rootfs.File:
		data, err := s.read()
		e.Data = data
		return e, err
	case rootfs.DataBind:
		data, err := s.read()
		e.Data = data
		return e, err
	}
	return s.entry, nil
}

func (s step) read() (string, error) {
	data, err := readAll(s.fd)
	if err != nil {
		return "", because(err, "Can't write data to file %s", s.dest)
	}
	closeFD(s.fd)
	return string(data), nil
}

func reals(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, p := range paths {
		var err error
		if out[i], err = real(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// real is realpath(3).
func real(p string) (string, error) {
	path, err := filepath.EvalSymlinks(p)
	if err == nil && p == "" {
		err = syscall.ENOENT
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	var errno syscall.Errno
	switch {
	case err == nil:
		return path, nil
	case errors.As(err, &errno):
		err = errno
	case strings.Contains(err.Error(), "too many links"):
		err = syscall.ELOOP
	}
	return "", because(err, "Can't find source path %s", p)
}

// console is the terminal that standard output is; "": it is none.
func console() string {
	name, err := os.Readlink("/proc/self/fd/1")
	if err != nil || !strings.HasPrefix(name, "/dev/") || !isTerminal(1) {
		return ""
	}
	if info, err := os.Stat(name); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return ""
	}
	return name
}
