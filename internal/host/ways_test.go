package host

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const (
	plainMounts  = "22 27 0:21 / /proc rw,relatime - proc proc rw\n27 1 254:0 / / rw - ext4 /dev/vda rw\n"
	dockerMounts = plainMounts + "60 27 254:0 /var/lib/docker/containers/ab/hosts /etc/hosts rw - ext4 /dev/vda rw\n"
	otherMounts  = plainMounts + "60 27 254:0 /data/ab/hosts /etc/hosts rw - ext4 /dev/vda rw\n"
)

// TestTheRuntimeIsRecognised by what each leaves, and not by what a host without it may have, too.
func TestTheRuntimeIsRecognised(t *testing.T) {
	type m = map[string]string
	for name, c := range map[string]struct {
		files                      []string
		env                        m
		version, cgroup, mountinfo string
		want                       Runtime
		evidence, unit             string
	}{
		"nothing":                                 {mountinfo: plainMounts, cgroup: "0::/user.slice/user-1000.slice/session-2.scope\n"},
		"a program of a desktop":                  {cgroup: "0::/user.slice/user-1000.slice/user@1000.service/app.slice/code.service\n"},
		"a root exported from Docker":             {files: []string{"/.dockerenv"}, mountinfo: plainMounts},
		"Docker":                                  {files: []string{"/.dockerenv"}, mountinfo: otherMounts, want: Docker, evidence: "/.dockerenv"},
		"Docker by its mounts":                    {mountinfo: dockerMounts, want: Docker, evidence: "/docker/containers/"},
		"Docker by its cgroup":                    {cgroup: "0::/system.slice/docker-0123.scope\n", want: Docker, evidence: "/docker"},
		"Podman":                                  {files: []string{"/run/.containerenv"}, want: Podman, evidence: "/run/.containerenv"},
		"Podman without the file":                 {env: m{"container": "podman"}, want: Podman, evidence: "container is podman"},
		"nerdctl":                                 {mountinfo: plainMounts + "60 27 254:0 /var/lib/nerdctl/1/etchosts/default/ab/hosts /etc/hosts rw - ext4 x rw\n", want: Containerd, evidence: "/nerdctl/"},
		"Kubernetes by its variables":             {env: m{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, want: Kubernetes, evidence: "KUBERNETES_SERVICE_HOST"},
		"Kubernetes by its mounts":                {mountinfo: plainMounts + "60 27 254:0 /var/lib/kubelet/pods/ab/etc-hosts /etc/hosts rw - ext4 x rw\n", want: Kubernetes, evidence: "/kubelet/pods/"},
		"Kubernetes that starts Docker's":         {files: []string{"/.dockerenv"}, mountinfo: otherMounts, cgroup: "0::/kubepods/burstable/pod1/ab\n", want: Kubernetes, evidence: "kubepods"},
		"gVisor in Docker":                        {files: []string{"/.dockerenv"}, mountinfo: otherMounts, version: "Linux version 4.4.0 " + gVisorBuild + "\n", want: GVisor, evidence: "/proc/version"},
		"LXC by lxcfs":                            {mountinfo: plainMounts + "80 22 0:50 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n", want: LXC, evidence: "fuse.lxcfs"},
		"Incus by its socket":                     {files: []string{"/dev/incus/sock"}, want: LXC, evidence: "/dev/incus/sock"},
		"a service":                               {cgroup: "0::/system.slice/agent.service\n", want: Systemd, evidence: "agent.service", unit: "agent.service"},
		"a service with a cgroup below":           {cgroup: "0::/system.slice/agent.service/main\n", want: Systemd, evidence: "agent.service", unit: "agent.service"},
		"a service, cgroup v1":                    {cgroup: "3:memory:/x\n1:name=systemd:/system.slice/agent.service\n", want: Systemd, evidence: "agent.service", unit: "agent.service"},
		"a service of a template":                 {cgroup: "0::/system.slice/system-agent.slice/agent@1.service\n", want: Systemd, evidence: "agent@1.service", unit: "agent@1.service"},
		"WSL 2":                                   {version: "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1)", want: WSL, evidence: "/proc/version"},
		"a kernel that only sounds like gVisor's": {version: "Linux version 4.4.0 (gcc) #1 SMP Mon Jan 11 15:06:54 PST 2016"},
	} {
		got, evidence, unit := traces{
			exists: func(p string) bool { return slices.Contains(c.files, p) },
			getenv: func(name string) string { return c.env[name] }, version: c.version, cgroup: c.cgroup, mountinfo: c.mountinfo,
		}.runtime()
		if got != c.want || !strings.Contains(evidence, c.evidence) || unit != c.unit || (evidence == "") != (got == "") {
			t.Errorf("%s: %q, %q, %q", name, got, evidence, unit)
		}
	}
}

// TestEachHostHasItsWays: what helps on a host is named, and what helps on another is not.
func TestEachHostHasItsWays(t *testing.T) {
	refused, mount := Obstacle{Errno: syscall.EPERM}, Obstacle{Errno: syscall.EPERM, Mount: true}
	const sysctl = "kernel.apparmor_restrict_unprivileged_userns=0"
	texts := []string{"seccomp=unconfined", "seccomp=docker-seccomp.json", "systempaths=unconfined", "apparmor=unconfined", "label=disable", "unmask=ALL", "security_opt: [",
		"procMount: Unmasked", "appArmorProfile:", "RestrictNamespaces=no", "security.nesting=true raw.lxc=lxc.apparmor.profile=unconfined", "raw.apparmor='profile holdfast ", "\"/usr/bin/agent\" cx -> holdfast,' && lxc restart NAME", "lxc.apparmor.profile = unconfined", "userns,", sysctl, "5.12", "Landlock domain", "profile is in force, \"agent\"", "CONFIG_USER_NS", "/proc is whole", "system call filter", "runc", "cap-add SETFCAP", "cap_add: [SETFCAP]", "{add: [SETFCAP]", "CAP_SETFCAP"}
	for name, c := range map[string]struct {
		o    Obstacle
		a    Around
		want []string // all of texts that the ways, or the remedy where there is none, have
	}{
		"Docker by default needs both options": {refused, Around{Runtime: Docker, Filtered: true, Masked: true},
			[]string{"seccomp=unconfined", "seccomp=docker-seccomp.json", "systempaths=unconfined", "security_opt: ["}},
		"Docker with SYS_ADMIN refuses pivot_root after the mount": {mount, Around{Runtime: Docker, Filtered: true, Masked: true},
			[]string{"seccomp=unconfined", "seccomp=docker-seccomp.json", "systempaths=unconfined", "security_opt: ["}},
		"Docker without its profile needs /proc":  {mount, Around{Runtime: Docker, Masked: true}, []string{"systempaths=unconfined", "security_opt: ["}},
		"Docker whose /proc is whole needs calls": {refused, Around{Runtime: Docker, Filtered: true}, []string{"seccomp=unconfined", "seccomp=docker-seccomp.json", "security_opt: ["}},
		"Docker where AppArmor denies mounts":     {mount, Around{Runtime: Docker, Masked: true, Profile: "docker-default"}, []string{"systempaths=unconfined", "apparmor=unconfined", "security_opt: ["}},
		"Docker on Ubuntu 24.04":                  {refused, Around{Runtime: Docker, Filtered: true, Sysctls: []string{sysctl}, AppArmor: true}, []string{"seccomp=unconfined", "seccomp=docker-seccomp.json", sysctl, "security_opt: ["}},
		"a Docker's filter that knows no call":    {Obstacle{Errno: syscall.ENOSYS}, Around{Runtime: Docker, Filtered: true}, []string{"seccomp=unconfined", "seccomp=docker-seccomp.json", "security_opt: ["}},
		"nerdctl":                                 {refused, Around{Runtime: Containerd, Filtered: true, Masked: true}, []string{"seccomp=unconfined", "systempaths=unconfined"}},
		"Podman, which allows namespaces":         {mount, Around{Runtime: Podman, Filtered: true, Masked: true}, []string{"unmask=ALL"}},
		"Podman with another profile":             {refused, Around{Runtime: Podman, Filtered: true, Masked: true}, []string{"unmask=ALL", "seccomp=unconfined"}},
		"Podman with SELinux":                     {mount, Around{Runtime: Podman, Masked: true, Profile: "system_u:system_r:container_t:s0:c1,c2"}, []string{"unmask=ALL", "label=disable"}},
		"root in Docker with all capabilities dropped": {refused, Around{Runtime: Docker, Masked: true, NoFCap: true},
			[]string{"systempaths=unconfined", "security_opt: [", "cap-add SETFCAP", "cap_add: [SETFCAP]"}},
		"root in a pod with all capabilities dropped": {refused, Around{Runtime: Kubernetes, Filtered: true, Masked: true, NoFCap: true}, []string{"procMount: Unmasked", "{add: [SETFCAP]"}},
		"root in a service with few capabilities":     {refused, Around{Runtime: Systemd, Unit: "a.service", NoFCap: true}, []string{"RestrictNamespaces=no", "CAP_SETFCAP"}},
		"root with few capabilities":                  {refused, Around{Masked: true, NoFCap: true}, []string{"CAP_SETFCAP"}},
		"Kubernetes":                                  {refused, Around{Runtime: Kubernetes, Filtered: true, Masked: true}, []string{"procMount: Unmasked"}},
		"Kubernetes with containerd's AppArmor":       {mount, Around{Runtime: Kubernetes, Masked: true, Profile: "cri-containerd.apparmor.d"}, []string{"procMount: Unmasked", "appArmorProfile:"}},
		"LXC":                                         {refused, Around{Runtime: LXC, Masked: true}, []string{"security.nesting=true raw.lxc=lxc.apparmor.profile=unconfined"}},
		"LXC whose program has a name to write":       {refused, Around{Runtime: LXC, Program: "/usr/bin/agent"}, []string{"raw.apparmor='profile holdfast ", "\"/usr/bin/agent\" cx -> holdfast,' && lxc restart NAME", "security.nesting=true raw.lxc=lxc.apparmor.profile=unconfined"}},
		"LXC whose program's name is a pattern":       {refused, Around{Runtime: LXC, Program: "/usr/bin/[a]gent"}, []string{"security.nesting=true raw.lxc=lxc.apparmor.profile=unconfined"}},
		"LXC whose program's name ends a quotation":   {refused, Around{Runtime: LXC, Program: "/usr/bin/it's"}, []string{"security.nesting=true raw.lxc=lxc.apparmor.profile=unconfined"}},
		"LXC under AppArmor, without LXD or Incus":    {refused, Around{Runtime: LXC, Profile: "lxc-container-default-cgns"}, []string{"security.nesting=true raw.lxc=lxc.apparmor.profile=unconfined", "lxc.apparmor.profile = unconfined"}},
		"a service of systemd":                        {refused, Around{Runtime: Systemd, Unit: "a.service", Filtered: true}, []string{"RestrictNamespaces=no"}},
		"a service that protects kernel settings":     {mount, Around{Runtime: Systemd, Unit: "a.service", Masked: true}, []string{"RestrictNamespaces=no"}},
		"a service that nothing was taken from":       {refused, Around{Runtime: Systemd, Unit: "a.service", Sysctls: []string{sysctl}, AppArmor: true, Program: "/usr/bin/agent"}, []string{sysctl, "userns,"}},
		"gVisor":                                      {refused, Around{Runtime: GVisor}, []string{"runc"}},
		"Ubuntu 24.04":                                {mount, Around{Sysctls: []string{sysctl}, AppArmor: true, Program: "/usr/bin/agent"}, []string{sysctl, "userns,"}},
		"two settings, of which a profile is one":     {refused, Around{Sysctls: []string{"user.max_user_namespaces=15000", sysctl}, AppArmor: true, Program: "/usr/bin/agent"}, []string{sysctl}},
		"an old kernel":                               {Obstacle{Errno: syscall.ENOSYS, Mount: true}, Around{}, []string{"5.12"}},
		"an old kernel in Docker":                     {Obstacle{Errno: syscall.ENOSYS, Mount: true}, Around{Runtime: Docker, Masked: true}, []string{"5.12"}},
		"a Landlock domain":                           {mount, Around{}, []string{"Landlock domain"}},
		"a program under an AppArmor profile":         {refused, Around{Profile: "agent"}, []string{"profile is in force, \"agent\""}},
		"a profile that denies the mounts":            {mount, Around{Profile: "agent"}, []string{"profile is in force, \"agent\""}},
		"a profile on a kernel without namespaces":    {Obstacle{Errno: syscall.EINVAL}, Around{Profile: "agent"}, []string{"CONFIG_USER_NS"}},
		"an unknown container's /proc":                {mount, Around{Masked: true, Filtered: true}, []string{"/proc is whole"}},
		"an unknown filter":                           {refused, Around{Filtered: true}, []string{"system call filter"}},
		"a kernel without user namespaces":            {Obstacle{Errno: syscall.EINVAL}, Around{}, []string{"CONFIG_USER_NS"}},
		"WSL 2 with a kernel of one's own":            {Obstacle{Errno: syscall.EINVAL}, Around{Runtime: WSL}, []string{"CONFIG_USER_NS"}},
		"an EPERM that nothing but a host explains":   {refused, Around{}, []string{"CONFIG_USER_NS"}},
	} {
		f := Facts{Namespaces: Fact{Answer: No}, Around: c.a, Obstacle: c.o}
		remedy := c.o.remedy(c.a)
		said := remedy
		for _, w := range f.Ways() {
			said += "\n" + w.In + "\n" + w.Text
			if w.In == "" || w.Text == "" || strings.HasSuffix(w.Text, "\n") {
				t.Errorf("%s: the way %+v", name, w)
			}
		}
		if remedy == "" || strings.Contains(remedy, "\n") {
			t.Errorf("%s: the remedy is %q", name, remedy)
		}
		for _, text := range texts {
			if strings.Contains(said, text) != slices.Contains(c.want, text) {
				t.Errorf("%s: %q is said or not: want of these %q:\n%s", name, text, c.want, said)
			}
		}
	}
	covered := Facts{Namespaces: Fact{Answer: Yes}, SharedPIDs: true, Around: Around{Runtime: Podman, Filtered: true, Masked: true}, Obstacle: mount}
	if ways := covered.Ways(); len(ways) != 1 || ways[0].Text != "--security-opt unmask=ALL" {
		t.Errorf("all namespaces but one: %v", ways)
	}
	for name, f := range map[string]Facts{"namespaces": {Namespaces: Fact{Answer: Yes}, Around: Around{Runtime: Docker}}, "not tried": {Around: Around{Runtime: Docker}}} {
		if ways := f.Ways(); ways != nil {
			t.Errorf("%s: %v", name, ways)
		}
	}
}

// TestTheProfileForLXDIsTheDocumentedOne, which says why it is as it is.
func TestTheProfileForLXDIsTheDocumentedOne(t *testing.T) {
	text, err := os.ReadFile("../../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\n```\n" + lxdProfile("/usr/local/bin/agent") + "\n```\n"; !strings.Contains(string(text), want) {
		t.Errorf("docs/hosts.md does not have %s", want)
	}
}

func TestCoveredPartsOfProcAreSeen(t *testing.T) {
	const proc = "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"nothing":             {proc, false},
		"binfmt_misc":         {proc + "30 22 0:25 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n", false},
		"Docker's kcore":      {proc + "31 22 0:26 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw\n", true},
		"Docker's /proc/sys":  {proc + "32 22 0:21 /sys /proc/sys ro - proc proc rw\n", true},
		"another tree's proc": {proc + "33 27 0:21 / /chroot/proc rw - proc proc rw\n", false},
	} {
		if got := coversProc(c.text); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
