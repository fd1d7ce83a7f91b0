package resolve

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// Root resolves the entries of an explicit root on this host: canonical sources, and
// optional ones that are not there left out.
func Root(p policy.Policy) ([]MountEntry, error) {
	if p.Root == nil {
		return nil, nil
	}
	var out []MountEntry
	for i, e := range p.Root.Entries {
		do, err := rootEntry(p, e, strconv.Itoa(i))
		if bad := (*policy.PolicyError)(nil); errors.As(err, &bad) {
			bad.Field = errtext.Indexed("Root.Entries", i) + bad.Field
			return nil, bad
		}
		if err != nil {
			return nil, err
		}
		if do != nil {
			out = append(out, MountEntry{Field: errtext.Indexed("Root.Entries", i), Action: do})
		}
	}
	return out, checkRootLinks(p, out)
}

func rootEntry(p policy.Policy, e rootfs.Entry, number string) (plan.Action, error) {
	switch e := e.(type) {
	case rootfs.Bind:
		return bindEntry(p, e)
	case rootfs.Tmpfs:
		return plan.PutTmpfs{At: e.At, Mode: rootfs.ModeBits(e.Mode, 0o755), Bytes: e.Bytes, NoExec: e.NoExec}, nil
	case rootfs.Dir:
		return plan.PutDir{At: e.At, Mode: rootfs.ModeBits(e.Mode, 0o755)}, nil
	case rootfs.File:
		return plan.PutFile{At: e.At, Mode: rootfs.ModeBits(e.Mode, 0o444), Data: e.Data}, nil
	case rootfs.DataBind:
		return plan.PutData{At: e.At, Mode: rootfs.ModeBits(e.Mode, 0o600), Data: e.Data, Write: e.Write, Slot: "d" + number}, nil
	case rootfs.Symlink:
		return plan.PutLink(e), nil
	case rootfs.Chmod:
		return plan.PutMode{At: e.At, Mode: rootfs.ModeBits(e.Mode, 0)}, nil
	case rootfs.RemountReadOnly:
		return plan.PutReadOnly(e), nil
	case rootfs.Proc:
		return plan.PutProc{At: e.At, New: !p.Root.Namespaces.SharePID || p.Root.Namespaces.PID != nil, Cover: !e.Uncovered || os.Getuid() == 0}, nil
	case rootfs.Dev:
		return devEntry(p, e)
	case rootfs.Mqueue:
		return plan.PutQueue(e), nil
	case rootfs.Overlay:
		layers, err := sources(e.Layers)
		if err != nil {
			return nil, err
		}
		upper, err := source("Upper", e.Upper)
		if err != nil {
			return nil, err
		}
		work, err := source("Work", e.Work)
		return plan.PutOverlay{At: e.At, Layers: layers, Upper: upper, Work: work}, err
	case rootfs.TmpOverlay:
		layers, err := sources(e.Layers)
		return plan.PutOverlay{At: e.At, Layers: layers, Slot: "o" + number}, err
	case rootfs.ReadOnlyOverlay:
		layers, err := sources(e.Layers)
		return plan.PutOverlay{At: e.At, Layers: layers}, err
	}
	return nil, &policy.PolicyError{Problem: "is nil"}
}

func bindEntry(p policy.Policy, e rootfs.Bind) (plan.Action, error) {
	do := plan.PutBind{At: e.At, Write: e.Write, Device: e.Devices, NoExec: e.NoExec, NoExecve: e.NoExecve, Plain: e.Write && p.GuardsRoot()}
	if e.File != nil {
		return fileEntry(do, e.File)
	}
	real, info, err := Canonical(e.Source)
	if e.Optional && errors.Is(err, syscall.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &policy.PolicyError{Field: ".Source", Value: e.Source, Problem: "cannot be shown", Err: err}
	}
	do.Source, do.Dir = real, info.IsDir()
	return do, nil
}

// fileEntry finds the path of what a descriptor has open: a mount can be taken
// from a path of the sandbox's own mount namespace alone (open_tree(2)).
func fileEntry(do plan.PutBind, f *os.File) (plan.Action, error) {
	bad := func(err error) error {
		return &policy.PolicyError{Field: ".File", Value: f.Name(), Problem: "cannot be shown", Err: err}
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, bad(err)
	}
	var open, found syscall.Stat_t
	controlErr := raw.Control(func(fd uintptr) {
		if err = syscall.Fstat(int(fd), &open); err == nil {
			do.Source, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd)))
		}
	})
	if err := errors.Join(controlErr, err); err != nil {
		return nil, bad(err)
	}
	if err := syscall.Lstat(do.Source, &found); err != nil {
		return nil, bad(err)
	}
	if open.Dev != found.Dev || open.Ino != found.Ino {
		return nil, bad(syscall.ESTALE)
	}
	do.Is = plan.FileID{Device: open.Dev, Inode: open.Ino}
	do.Dir = open.Mode&syscall.S_IFMT == syscall.S_IFDIR
	return do, nil
}

func devEntry(p policy.Policy, e rootfs.Dev) (plan.Action, error) {
	do := plan.PutDev{At: e.At}
	for _, d := range OwnDevices {
		if _, err := os.Lstat(d); err == nil {
			do.Devices = append(do.Devices, strings.TrimPrefix(d, "/dev/"))
		}
	}
	if e.Console != "" {
		var err error
		if do.Console, err = source("Console", e.Console); err != nil {
			return nil, err
		}
	}
	return do, nil
}

func sources(layers []string) ([]string, error) {
	out := make([]string, len(layers))
	for i, l := range layers {
		var err error
		if out[i], err = source(errtext.Indexed("Layers", i), l); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func source(field, p string) (string, error) {
	real, _, err := Canonical(p)
	if err != nil {
		return "", &policy.PolicyError{Field: "." + field, Value: p, Problem: "cannot be shown", Err: err}
	}
	return real, nil
}
