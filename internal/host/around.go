package host

import (
	"path"
	"strings"
)

// A Runtime is what runs this process: a container runtime, a service manager, or a kernel that is not Linux itself.
type Runtime string

// The runtimes that are known. The zero value is a host without one, or with one that is not known.
const (
	Docker     Runtime = "Docker"
	Podman     Runtime = "Podman"
	Kubernetes Runtime = "Kubernetes"
	Containerd Runtime = "containerd" // without Kubernetes, as by nerdctl
	LXC        Runtime = "LXC or Incus"
	GVisor     Runtime = "gVisor"
	WSL        Runtime = "WSL 2"
	Systemd    Runtime = "systemd"
)

// Around is what surrounds this process and bears on what the kernel allows it. [Facts.Ways] says what helps.
type Around struct {
	Runtime    Runtime  `json:"runtime,omitempty"`
	Evidence   string   `json:"evidence,omitempty"`   // where Runtime was seen
	Unit       string   `json:"unit,omitempty"`       // systemd's unit of this process
	Program    string   `json:"program,omitempty"`    // this process's executable
	Profile    string   `json:"profile,omitempty"`    // the security module's profile or label: "docker-default"; "": unconfined
	Sysctls    []string `json:"sysctls,omitempty"`    // those that forbid user namespaces, as the settings that allow them
	AppArmor   bool     `json:"appArmor,omitempty"`   // AppArmor restricts user namespaces to programs with a profile that allows them
	Filtered   bool     `json:"filtered,omitempty"`   // a system call filter is in force
	Killing    string   `json:"killing,omitempty"`    // a call for which that filter kills the process: "seccomp(2)"
	NoSchedule bool     `json:"noSchedule,omitempty"` // it kills for sched_setaffinity(2) or sched_setscheduler(2), without which a sandbox is slower
	Masked     bool     `json:"masked,omitempty"`     // parts of /proc are covered
	Hidden     bool     `json:"hidden,omitempty"`     // this process is not dumpable, as of an executable that its user may not read: its uid_map is root's (PR_SET_DUMPABLE)
	NoFCap     bool     `json:"noFCap,omitempty"`     // this is uid 0 without CAP_SETFCAP, which may not be mapped into a user namespace since Linux 5.12 (user_namespaces(7))
}

// String says which runtime this is, and where it was seen; "": none was recognised.
func (a Around) String() string {
	if a.Runtime == "" {
		return ""
	}
	return string(a.Runtime) + " (" + a.Evidence + ")"
}

// traces are what runtimes leave where a process can see it.
type traces struct {
	exists    func(path string) bool
	getenv    func(name string) string
	version   string // /proc/version
	cgroup    string // /proc/self/cgroup
	mountinfo string // /proc/thread-self/mountinfo
}

// gVisorBuild is in gVisor's /proc/version, whatever the release that it plays
// (gvisor.dev/gvisor/pkg/sentry/syscalls/linux, LinuxVersion).
const gVisorBuild = "#1 SMP Sun Jan 10 15:06:54 PST 2016"

// runtime returns the innermost runtime that can be recognised, where, and systemd's unit. What decides comes first: gVisor is the
// kernel whoever has started it, and Kubernetes has containerd or Docker start its containers.
func (t traces) runtime() (r Runtime, evidence, unit string) {
	file := func(p string) string { return map[bool]string{true: p + " exists"}[t.exists(p)] }
	variable := func(name string) string { return map[bool]string{true: name + " is set"}[t.getenv(name) != ""] }
	holds := func(where, text, part string) string {
		return map[bool]string{true: where + " has " + part}[strings.Contains(text, part)]
	}
	equal := func(name, value string) string {
		return map[bool]string{true: name + " is " + value}[t.getenv(name) == value]
	}
	// A root file system that was exported from a container has the file still; a container has its own /etc/hosts mounted.
	dockerenv := file("/.dockerenv")
	if !strings.Contains(t.mountinfo, " /etc/hosts ") {
		dockerenv = ""
	}
	const cgroup, mounts = "/proc/self/cgroup", "/proc/self/mountinfo"
	for _, candidate := range []struct {
		runtime  Runtime
		evidence []string
	}{
		{GVisor, []string{holds("/proc/version", t.version, gVisorBuild)}},
		{Kubernetes, []string{variable("KUBERNETES_SERVICE_HOST"), file("/var/run/secrets/kubernetes.io"), holds(cgroup, t.cgroup, "kubepods"), holds(mounts, t.mountinfo, "/kubelet/pods/")}},
		{Podman, []string{file("/run/.containerenv"), equal("container", "podman"), holds(cgroup, t.cgroup, "libpod-")}},
		{Docker, []string{dockerenv, holds(cgroup, t.cgroup, "/docker"), holds(mounts, t.mountinfo, "/docker/containers/")}},
		{Containerd, []string{holds(cgroup, t.cgroup, "/nerdctl"), holds(mounts, t.mountinfo, "/nerdctl/")}},
		{LXC, []string{equal("container", "lxc"), file("/dev/lxd/sock"), file("/dev/incus/sock"), holds(mounts, t.mountinfo, "fuse.lxcfs")}},
	} {
		for _, e := range candidate.evidence {
			if e != "" {
				return candidate.runtime, e, ""
			}
		}
	}
	if unit := unitOf(t.cgroup); unit != "" {
		return Systemd, cgroup + " has the unit " + unit, unit
	}
	if e := holds("/proc/version", t.version, "microsoft-standard-WSL2"); e != "" {
		return WSL, e, ""
	}
	return "", "", ""
}

// unitOf returns the system's unit that a process is in by the text of its /proc/PID/cgroup: the last part of
// /system.slice/NAME.service. A login is in a scope, and what a desktop starts in a unit of the user's manager, which
// takes no namespaces away.
func unitOf(cgroup string) string {
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // cgroups(7): ID:CONTROLLERS:PATH
		if len(parts) != 3 || parts[1] != "" && parts[1] != "name=systemd" || !strings.HasPrefix(parts[2], "/system.slice/") {
			continue
		}
		for p := parts[2]; p != "/"; p = path.Dir(p) {
			if strings.HasSuffix(p, ".service") {
				return path.Base(p)
			}
		}
	}
	return ""
}

// coversProc reports whether something is mounted below /proc, by the text of mountinfo
// (proc_pid_mountinfo(5)). What the kernel made to be mounted on does not count
// (mnt_already_visible of fs/namespace.c looks past directories that are always empty).
func coversProc(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasPrefix(f[4], "/proc/") {
			continue
		}
		switch f[4] {
		case "/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd", "/proc/openprom":
		default:
			return true
		}
	}
	return false
}
