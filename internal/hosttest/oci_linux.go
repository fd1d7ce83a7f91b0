package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A container is what an OCI runtime is asked for (github.com/opencontainers/runtime-spec, config.md).
type container struct {
	uid      int
	readOnly bool
	filter   []byte   // seccomp profile, Docker's format; nil: none
	caps     []string // of uid 0
	noNew    bool     // no_new_privs
	masked   bool     // /proc, as Docker and containerd mask it
	userNS   bool     // a user namespace, as of a pod with hostUsers: false
	env      []string
	docker   bool // with Docker's traces
}

// defaultCaps are those that Docker and containerd leave to uid 0.
var defaultCaps = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"}

// maskedPaths and readonlyPaths are Docker's and containerd's.
var (
	maskedPaths   = []string{"/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

type object = map[string]any

func mount(at, kind, source string, options ...string) object {
	return object{"destination": at, "type": kind, "source": source, "options": options}
}

// spec is the container's config.json.
func (c container) spec(w *world, args []string) (object, error) {
	process := object{"user": object{"uid": c.uid, "gid": c.uid}, "args": args, "cwd": "/", "env": append(w.environ(), c.env...), "noNewPrivileges": c.noNew}
	if caps := c.caps; c.uid == 0 {
		process["capabilities"] = object{"bounding": caps, "effective": caps, "permitted": caps}
	} else {
		process["capabilities"] = object{"bounding": caps}
	}
	mounts := []object{
		mount("/proc", "proc", "proc"),
		mount("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
		mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
		mount("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),
		mount("/dev/mqueue", "mqueue", "mqueue", "nosuid", "noexec", "nodev"),
		mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
	}
	if c.readOnly { // a pod's emptyDir
		mounts = append(mounts, mount("/tmp", "tmpfs", "tmpfs", "nosuid", "nodev", "mode=1777"))
	}
	for _, b := range w.binds {
		mounts = append(mounts, mount(b.at, "bind", b.source, append([]string{"rbind"}, b.options...)...))
	}
	if c.docker {
		mounts = append(mounts, mount("/etc/hosts", "bind", filepath.Join(w.dir, "hosts"), "rbind", "ro"))
	}
	spaces := []object{{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}}
	linux := object{"cgroupsPath": w.cgroup + "/c", "resources": object{"devices": []object{{"allow": false, "access": "rwm"}}}}
	if c.masked {
		linux["maskedPaths"], linux["readonlyPaths"] = maskedPaths, readonlyPaths
	}
	if c.userNS {
		spaces = append(spaces, object{"type": "user"})
		ids := []object{{"containerID": 0, "hostID": shifted, "size": 65536}}
		linux["uidMappings"], linux["gidMappings"] = ids, ids
	}
	linux["namespaces"] = spaces
	if c.filter != nil {
		f, err := filterOf(c.filter, c.caps)
		if err != nil {
			return nil, err
		}
		linux["seccomp"] = f
	}
	return object{"ociVersion": "1.0.2", "process": process, "root": object{"path": "rootfs", "readonly": c.readOnly}, "hostname": "c", "mounts": mounts, "linux": linux}, nil
}

// shifted is the first user outside of a container with a user namespace.
const shifted = 200_000

// filterOf resolves a profile of Docker's format, whose rules can depend on capabilities and architectures, for a runtime
// (profiles/seccomp of github.com/moby/moby; containerd's has no such conditions).
func filterOf(text []byte, caps []string) (object, error) {
	var p struct {
		DefaultAction   string
		DefaultErrnoRet *uint
		Architectures   []string
		ArchMap         []struct {
			Architecture     string
			SubArchitectures []string
		}
		Syscalls []struct {
			Names              []string
			Action             string
			ErrnoRet           *uint
			Args               []object
			Includes, Excludes struct{ Caps, Arches []string }
		}
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, err
	}
	any := func(list, of []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(of, s) })
	}
	arch := []string{runtime.GOARCH}
	var rules []object
	for _, r := range p.Syscalls {
		if len(r.Includes.Caps) > 0 && !any(r.Includes.Caps, caps) || any(r.Excludes.Caps, caps) ||
			len(r.Includes.Arches) > 0 && !any(r.Includes.Arches, arch) || any(r.Excludes.Arches, arch) {
			continue
		}
		rule := object{"names": r.Names, "action": r.Action}
		if r.ErrnoRet != nil {
			rule["errnoRet"] = *r.ErrnoRet
		}
		if len(r.Args) > 0 {
			rule["args"] = r.Args
		}
		rules = append(rules, rule)
	}
	// Numbers of an architecture that is not listed end the thread that calls them.
	archs := []string{map[string]string{"amd64": "SCMP_ARCH_X86_64", "arm64": "SCMP_ARCH_AARCH64"}[runtime.GOARCH]}
	for _, a := range p.ArchMap {
		if a.Architecture == archs[0] {
			archs = append(archs, a.SubArchitectures...)
		}
	}
	if slices.Contains(p.Architectures, archs[0]) {
		archs = p.Architectures
	}
	f := object{"defaultAction": p.DefaultAction, "syscalls": rules, "architectures": archs}
	if p.DefaultErrnoRet != nil {
		f["defaultErrnoRet"] = *p.DefaultErrnoRet
	}
	return f, nil
}

// runContainer runs a program of the container by an OCI runtime, whose global flags are given.
func (w *world) runContainer(ctx context.Context, program string, flags []string, c container, args []string) ([]byte, error) {
	bundle, err := os.MkdirTemp(w.dir, "bundle-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bundle)
	if err := os.Chmod(bundle, 0o755); err != nil {
		return nil, err
	}
	if err := w.tree(filepath.Join(bundle, "rootfs"), c.docker); err != nil {
		return nil, err
	}
	spec, err := c.spec(w, args)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644); err != nil {
		return nil, err
	}
	name := strings.ReplaceAll(filepath.Base(bundle), "bundle-", "c")
	flags = append(flags, "--root", filepath.Join(w.dir, "run-"+filepath.Base(program)), "run", "--bundle", bundle, name)
	return output(exec.CommandContext(ctx, program, flags...))
}

// output runs a command, whose standard error is its error's.
func output(c *exec.Cmd) ([]byte, error) {
	out, err := c.Output()
	if e, is := err.(*exec.ExitError); is {
		text := strings.TrimSpace(string(e.Stderr))
		err = fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, text[max(0, len(text)-600):])
	}
	return out, err
}
