package host

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// An Obstacle is what the kernel refused when namespaces were tried.
type Obstacle struct {
	Errno syscall.Errno
	Mount bool // the namespaces were made, and a mount in them was refused
	Proc  bool // that of a new /proc
	Pivot bool // pivot_root(2) was refused
	Lo    bool // bringing up lo was refused
}

// A Way is a change to this host with which namespaces can be made, so that every bound is held.
type Way struct {
	In   string `json:"in"`   // where it is written: "docker run", "compose.yaml", "sysctl"
	Text string `json:"text"` // what to write there, in lines to copy
}

// Ways returns what would let this process make namespaces, all of them: each way alone is enough, the simplest first. There is none where
// they can be made, and none where the runtime, as gVisor, or the kernel has to be another.
func (f Facts) Ways() []Way {
	if f.Namespaces.Answer != No && !f.SharedPIDs || f.Obstacle.Errno == syscall.ENOSYS && !f.Around.Filtered {
		return nil
	}
	switch a := f.Around; a.Runtime {
	case Docker, Containerd:
		return dockerWays(a)
	case Podman:
		return []Way{{"podman run", a.options(podmanOptions(a, f.Obstacle))}}
	case Kubernetes:
		return []Way{{"the pod's manifest", a.sysctls(onTheHost) + kubernetesText(a)}}
	case LXC:
		// The first setting is for a /proc without lxcfs' covers; the profile with it refuses, by their paths, files and directories of the new root.
		const settings = " config set NAME security.nesting=true raw."
		wide := settings + "lxc=lxc.apparmor.profile=unconfined && "
		var ways []Way
		if profile := lxdProfile(a.Program); profile != "" {
			ways = []Way{{"lxc, for this program alone: the container's others stay under LXD's AppArmor profile", "lxc" + settings + "apparmor='" + profile + "' && lxc restart NAME"}}
		}
		ways = append(ways, Way{"lxc", "lxc" + wide + "lxc restart NAME"}, Way{"incus", "incus" + wide + "incus restart NAME"})
		if slices.Contains(moduleOptions(a), "apparmor=unconfined") {
			ways = append(ways, Way{LXCConfiguration, "lxc.apparmor.profile = unconfined"})
		}
		return ways
	case GVisor:
		return nil
	case Systemd:
		if a.Filtered || a.Masked || a.NoFCap {
			return []Way{{"systemctl edit " + a.Unit, systemdText + map[bool]string{true: "\nCapabilityBoundingSet=CAP_SETFCAP"}[a.NoFCap]}}
		}
	}
	return hostWays(f.Around)
}

// LXCConfiguration is where a [Way] out of a container of LXC alone is written (lxc.container.conf(5)).
const LXCConfiguration = "the container's configuration of lxc-start"

// hostWays are those of a host without a container.
func hostWays(a Around) []Way {
	var ways []Way
	if len(a.Sysctls) > 0 {
		ways = append(ways, Way{"a shell of root's, until the next boot", strings.TrimSuffix(a.sysctls(""), "\n")})
		ways = append(ways, Way{"/etc/sysctl.d/60-holdfast.conf", strings.Join(a.Sysctls, "\n")})
	}
	if a.AppArmor && len(a.Sysctls) == 1 && a.Program != "" {
		ways = append(ways, Way{"/etc/apparmor.d/holdfast, then apparmor_parser -r of it", AppArmorProfile(a.Program)})
	}
	return ways
}

// sysctls are the commands that set a's, each in a line with before in front: a container's are set on its host.
func (a Around) sysctls(before string) string {
	text := ""
	for _, s := range a.Sysctls {
		text += before + "sysctl -w " + s + "\n"
	}
	return text
}

const onTheHost = "# on the host, as root: "

// dockerWays names everything that is in the way, not the first thing alone: Docker's default profile
// refuses namespaces, and its covered /proc then keeps the kernel from mounting a new one
// (mount_too_revealing of fs/namespace.c).
func dockerWays(a Around) []Way {
	program, list := "docker run", dockerOptions(a)
	if a.Runtime == Containerd {
		return []Way{{"nerdctl run", a.sysctls(onTheHost) + a.options(list)}}
	}
	ways := []Way{{program, a.sysctls(onTheHost) + a.options(list)}, {"compose.yaml, in the service", a.sysctls(onTheHost) + "security_opt: [" + strings.Join(list, ", ") + "]" + map[bool]string{true: "\ncap_add: [SETFCAP]"}[a.NoFCap]}}
	if i := slices.Index(list, "seccomp=unconfined"); i >= 0 {
		narrow := slices.Clone(list)
		narrow[i] = "seccomp=docker-seccomp.json"
		ways = append(ways, Way{program + ", with docs/hosts/docker-seccomp.json, which allows less", a.sysctls(onTheHost) + a.options(narrow)})
	}
	return ways
}

// dockerOptions are values of --security-opt. A filter is named first in either case: the mount that fails may not be the last.
func dockerOptions(a Around) []string {
	var list []string
	if a.Filtered || !a.Masked {
		list = append(list, "seccomp=unconfined")
	}
	if a.Masked || !a.Filtered {
		list = append(list, "systempaths=unconfined")
	}
	return append(list, moduleOptions(a)...)
}

// podmanOptions: its default profile allows namespaces and mounts in them; the covered /proc alone is in the way.
func podmanOptions(a Around, o Obstacle) []string {
	list := []string{"unmask=ALL"}
	if !o.Mount {
		list = append(list, "seccomp=unconfined")
	}
	return append(list, moduleOptions(a)...)
}

// moduleOptions switch off the security module's profile of a container: docker-default and its kin deny mount(2).
func moduleOptions(a Around) []string {
	switch {
	case a.Profile == "":
		return nil
	case strings.Contains(a.Profile, ":"): // SELinux: user:role:type:level
		return []string{"label=disable"}
	}
	return []string{"apparmor=unconfined"}
}

func (a Around) options(list []string) string {
	return "--security-opt " + strings.Join(list, " --security-opt ") + map[bool]string{true: " --cap-add SETFCAP"}[a.NoFCap]
}

func kubernetesText(a Around) string {
	text := "spec:\n  hostUsers: false\n  containers:\n  - securityContext:\n      seccompProfile: {type: Unconfined}\n      procMount: Unmasked"
	if a.Profile != "" && !strings.Contains(a.Profile, ":") {
		text += "\n      appArmorProfile: {type: Unconfined}"
	}
	if a.NoFCap {
		text += "\n      capabilities: {add: [SETFCAP]}"
	}
	return text
}

// systemdText takes back what a unit can have that refuses namespaces, the mounts in them, or the calls of the sandbox
// (systemd.exec(5)). The kernel settings and logs are protected by mounts below /proc.
const systemdText = `[Service]
RestrictNamespaces=no
SystemCallFilter=
RestrictSUIDSGID=no
ProtectKernelTunables=no
ProtectKernelLogs=no
ProtectProc=default
ProcSubset=all`

// AppArmorProfile returns a profile that confines nothing and lets a program make user namespaces, where
// kernel.apparmor_restrict_unprivileged_userns is set (Ubuntu 23.10 and newer).
func AppArmorProfile(program string) string {
	return "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile holdfast \"" + program + "\" flags=(unconfined) {\n  userns,\n}"
}

// lxdProfile returns lines for the AppArmor profile of a container of LXD's, by which a program is in a profile below it. What LXD's denies by path no rule
// can allow beside it; "" where AppArmor or a shell would read the program's name as more than a name.
func lxdProfile(program string) string {
	if program == "" || strings.ContainsAny(program, "\"'\\\n*?[]{}^@") {
		return ""
	}
	return "profile holdfast flags=(attach_disconnected,mediate_deleted) { capability, dbus, file, mount, network, pivot_root, ptrace, remount, signal, umount, unix, " +
		"deny /proc/{kcore,sysrq-trigger} rwklx, deny /proc/{acpi,bus}/** wklx, deny /sys/{firmware,kernel}/** wklx, } \"" + program + "\" cx -> holdfast,"
}

// remedy says in one line what would let this process make namespaces.
func (o Obstacle) remedy(a Around) string {
	f := Facts{Namespaces: Fact{Answer: No}, Around: a, Obstacle: o}
	if ways := f.Ways(); len(ways) > 0 {
		first := strings.ReplaceAll(ways[0].Text, "\n", "; ")
		return ways[0].In + ": " + strings.TrimSuffix(first, "; ")
	}
	mount := o.Mount && (o.Errno == syscall.EPERM || o.Errno == syscall.EACCES)
	switch {
	case a.Runtime == GVisor:
		return "another container runtime for this container, such as runc; gVisor is a boundary of its own"
	case o.Errno == syscall.ENOSYS:
		return "Linux 5.12 or newer, whose mount_setattr(2) and the calls before it are needed"
	case a.Hidden && !o.Mount:
		return "chmod +r of this program's file, and no PR_SET_DUMPABLE: the kernel lets no process that may not be dumped map its ids"
	case a.NoFCap && !o.Mount:
		return "CAP_SETFCAP, without which root cannot be mapped into a user namespace, or an ordinary user for this program; and a /proc that is whole, if parts of it are covered"
	case a.Filtered && !o.Mount:
		return "a system call filter is in force: start this program under one that allows clone, unshare, mount and pivot_root in user namespaces"
	case a.Masked:
		return "parts of /proc are covered, so that no new one may be mounted: start this program where /proc is whole"
	case a.Profile != "" && (o.Errno == syscall.EPERM || o.Errno == syscall.EACCES):
		return "a security module's profile is in force, " + strconv.Quote(a.Profile) + ": allow in it what namespaces take (AppArmor: mount, umount, pivot_root, userns), or start this program without it"
	case mount:
		return "start this program where no Landlock domain and no security module refuses mount(2) to it"
	}
	return "a kernel with CONFIG_USER_NS, and a container or service manager that lets this process use it"
}
