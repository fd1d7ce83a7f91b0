package sandbox

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/plan"
)

// resolveLayout makes the entries concrete on this host: canonical sources, and
// optional ones that are not there left out.
func (p Policy) resolveLayout() ([]putting, error) {
	var out []putting
	for i, e := range p.Layout {
		do, err := p.resolveEntry(e, strconv.Itoa(i))
		if bad := (*PolicyError)(nil); errors.As(err, &bad) {
			bad.Field = indexed("Layout", i) + bad.Field
			return nil, bad
		}
		if err != nil {
			return nil, err
		}
		if do != nil {
			out = append(out, putting{field: indexed("Layout", i), do: do})
		}
	}
	return out, p.checkLayoutLinks(out)
}

func (p Policy) resolveEntry(e Entry, number string) (plan.Action, error) {
	switch e := e.(type) {
	case Bind:
		return p.resolveBind(e)
	case Tmpfs:
		return plan.PutTmpfs{At: e.At, Mode: modeOf(e.Mode, 0o755), Bytes: e.Bytes, NoExec: e.NoExec}, nil
	case Dir:
		return plan.PutDir{At: e.At, Mode: modeOf(e.Mode, 0o755)}, nil
	case File:
		return plan.PutFile{At: e.Path, Mode: modeOf(e.Mode, 0o444), Data: e.Data}, nil
	case DataBind:
		return plan.PutData{At: e.At, Mode: modeOf(e.Mode, 0o600), Data: e.Data, Write: e.Write, Slot: "d" + number}, nil
	case Symlink:
		return plan.PutLink(e), nil
	case Chmod:
		return plan.PutMode{At: e.At, Mode: modeOf(e.Mode, 0)}, nil
	case RemountReadOnly:
		return plan.PutReadOnly(e), nil
	case Proc:
		return plan.PutProc{At: e.At, New: !p.Namespaces.SharePID || p.Namespaces.PID != nil, Cover: !e.Uncovered || os.Getuid() == 0}, nil
	case Dev:
		return p.resolveDev(e)
	case Mqueue:
		return plan.PutQueue(e), nil
	case Overlay:
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
	case TmpOverlay:
		layers, err := sources(e.Layers)
		return plan.PutOverlay{At: e.At, Layers: layers, Slot: "o" + number}, err
	case ReadOnlyOverlay:
		layers, err := sources(e.Layers)
		return plan.PutOverlay{At: e.At, Layers: layers}, err
	}
	return nil, &PolicyError{Problem: "is nil"}
}

func (p Policy) resolveBind(e Bind) (plan.Action, error) {
	do := plan.PutBind{At: e.At, Write: e.Write, Device: e.Devices, NoExec: e.NoExec, NoExecve: e.NoExecve, Plain: e.Write && p.guards()}
	if e.File != nil {
		return resolveFile(do, e.File)
	}
	real, info, err := canonical(e.Source)
	if e.Optional && errors.Is(err, syscall.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &PolicyError{Field: ".Source", Value: e.Source, Problem: "cannot be shown", Err: err}
	}
	do.Source, do.Dir = real, info.IsDir()
	return do, nil
}

// resolveFile finds the path of what a descriptor has open: a mount can be taken
// from a path of the sandbox's own mount namespace alone (open_tree(2)).
func resolveFile(do plan.PutBind, f *os.File) (plan.Action, error) {
	bad := func(err error) error {
		return &PolicyError{Field: ".File", Value: f.Name(), Problem: "cannot be shown", Err: err}
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

func (p Policy) resolveDev(e Dev) (plan.Action, error) {
	do := plan.PutDev{At: e.At}
	for _, d := range basicDevices {
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
		if out[i], err = source(indexed("Layers", i), l); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func source(field, p string) (string, error) {
	real, _, err := canonical(p)
	if err != nil {
		return "", &PolicyError{Field: "." + field, Value: p, Problem: "cannot be shown", Err: err}
	}
	return real, nil
}
