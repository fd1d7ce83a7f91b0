package host

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// readAround looks at what surrounds this process.
func readAround() Around {
	read := func(name string) string {
		text, _ := os.ReadFile(name)
		return string(text)
	}
	t := traces{
		exists:    func(p string) bool { _, err := os.Lstat(p); return err == nil },
		getenv:    os.Getenv,
		version:   read("/proc/version"),
		cgroup:    read("/proc/self/cgroup"),
		mountinfo: read("/proc/thread-self/mountinfo"),
	}
	a := Around{Filtered: statusField("Seccomp") == 2, Masked: coversProc(t.mountinfo), Profile: profileOf(read("/proc/thread-self/attr/current"))}
	if a.Filtered {
		a.Killing, a.NoSchedule = killing()
	}
	a.Runtime, a.Evidence, a.Unit = t.runtime()
	a.NoFCap = os.Geteuid() == 0 && lacksFCap()
	a.Program, _ = os.Executable()
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	a.Hidden = err == nil && dumpable != 1 && os.Geteuid() != 0
	for _, c := range []struct{ file, bad, good string }{
		{"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=15000"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"},
		{appArmorSysctl, "1", "kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		if strings.TrimSpace(read(c.file)) == c.bad {
			a.Sysctls = append(a.Sysctls, c.good)
			a.AppArmor = a.AppArmor || c.file == appArmorSysctl
		}
	}
	return a
}

// lacksFCap reports whether CAP_SETFCAP is not in effect.
func lacksFCap() bool {
	var data [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SETFCAP) == 0
}

const appArmorSysctl = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

// profileOf reads /proc/PID/attr/current: AppArmor's "docker-default (enforce)", or a label of SELinux's.
func profileOf(text string) string {
	name, _, _ := strings.Cut(strings.TrimRight(text, "\x00\n"), " (")
	if name == "unconfined" || strings.Contains(name, ":unconfined_t:") {
		return ""
	}
	return name
}
