package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/host"
	"golang.org/x/sys/unix"
)

// manager is where Debian has systemd.
const manager = "/lib/systemd/systemd"

// units are settings of a service that refuse namespaces, mounts in them or Landlock (systemd.exec(5)).
var units = []struct{ name, settings string }{
	{"`RestrictNamespaces=yes`", "RestrictNamespaces=yes"},
	{"`SystemCallFilter=@system-service`", "SystemCallFilter=@system-service"},
	{"`SystemCallFilter=@system-service`, `SystemCallErrorNumber=EPERM`", "SystemCallFilter=@system-service\nSystemCallErrorNumber=EPERM"},
	{"`ProtectProc=invisible`, `ProcSubset=pid`", "ProtectProc=invisible\nProcSubset=pid"},
	{"`ProtectKernelTunables=yes`, `ProtectKernelLogs=yes`", "ProtectKernelTunables=yes\nProtectKernelLogs=yes"},
	{"`CapabilityBoundingSet=`", "User=root\nGroup=root\nCapabilityBoundingSet="},
	{"what `systemd-analyze security` asks for", `NoNewPrivileges=yes
CapabilityBoundingSet=
LockPersonality=yes
PrivateDevices=yes
PrivateTmp=yes
PrivateUsers=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=tmpfs
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=full
RemoveIPC=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
UMask=0027`},
}

// services are services of this machine's systemd. As those of changed they are for a virtual machine: systemd changes settings of its machine.
func (w *world) services() []habitat {
	if _, err := os.Stat(manager); err != nil {
		return nil
	}
	var list []habitat
	for _, u := range units {
		h := habitat{name: fmt.Sprintf("a systemd service, %s, emulated", u.name), user: "1000", uid: 1000, direct: true, unfiltered: strings.Contains(u.settings, "SystemCallFilter=")}
		if strings.HasPrefix(u.settings, "User=root\n") {
			h.user, h.uid = "root", 0
		}
		h.options = func(way host.Way) []string {
			if way.In != "systemctl edit "+unit {
				return nil
			}
			return []string{way.Text}
		}
		h.run = func(ctx context.Context, options []string, args ...string) ([]byte, error) {
			return w.runService(ctx, u.settings, options, args)
		}
		list = append(list, h)
	}
	return list
}

const unit = "agent.service"

// runService boots systemd with one service, whose standard output is returned. With the service systemd ends.
func (w *world) runService(ctx context.Context, settings string, dropIns, args []string) ([]byte, error) {
	const dir = "/etc/systemd/system/"
	home, out, errs := filepath.Join(w.dir, "home"), filepath.Join(w.dir, "out"), filepath.Join(w.dir, "errors")
	text := fmt.Sprintf("[Unit]\nDefaultDependencies=no\nSuccessAction=exit-force\nFailureAction=exit-force\n[Service]\nType=oneshot\nUser=1000\nGroup=1000\n"+
		"Environment=%s HOME=%s\nExecStart=%s\nStandardOutput=truncate:%s\nStandardError=truncate:%s\n%s\n", strings.Join(w.environ(), " "), home, strings.Join(args, " "), out, errs, settings)
	err := errors.Join(os.RemoveAll(dir+unit+".d"), os.MkdirAll(dir+unit+".d", 0o755), os.WriteFile(dir+unit, []byte(text), 0o644), os.MkdirAll(home, 0o755), os.Chown(home, 1000, 1000),
		os.WriteFile("/etc/passwd", []byte(etc["etc/passwd"]+"agent:x:1000:1000::/:/bin/sh\n"), 0o644), os.WriteFile("/etc/group", []byte(etc["etc/group"]+"agent:x:1000:\n"), 0o644))
	for i, text := range dropIns {
		err = errors.Join(err, os.WriteFile(fmt.Sprintf("%s%s.d/%d.conf", dir, unit, i), []byte(text), 0o644))
	}
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, "/proc/self/exe", "boot")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS}
	if _, err := output(c); err != nil {
		text, _ := os.ReadFile(errs)
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return os.ReadFile(out)
}

// boot becomes systemd, as the first process of a pid namespace. It takes itself to be in a container, and ends with a status.
func boot() error {
	if err := settle(); err != nil {
		return err
	}
	err := errors.Join(unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH), unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""), unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"))
	if err != nil {
		return err
	}
	return unix.Exec(manager, []string{manager, "--unit=" + unit, "--log-level=warning", "--log-target=console"}, []string{"container=oci"})
}
