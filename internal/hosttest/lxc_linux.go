package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/host"
)

// lxc is a container of LXC's with what its package asks for, in a virtual machine whose kernel has AppArmor: lxc-start(1) takes paths that its package has installed.
func (w *world) lxc() []habitat {
	if _, err := exec.LookPath("lxc-execute"); err != nil {
		return nil
	}
	h := habitat{name: fmt.Sprintf("LXC, AppArmor, Linux %s, emulated", release()), user: "root", run: w.runLXC}
	h.start = func(ctx context.Context) error {
		err := errors.Join(os.MkdirAll("/usr/lib/x86_64-linux-gnu/lxc", 0o755), os.MkdirAll("/run/lxc", 0o755)) // what its package and service make
		if _, e := output(exec.CommandContext(ctx, "apparmor_parser", "-r", "/etc/apparmor.d/lxc-containers")); err == nil {
			err = e
		}
		return err
	}
	h.options = func(way host.Way) []string {
		if way.In != host.LXCConfiguration {
			return nil
		}
		return []string{way.Text}
	}
	return []habitat{h}
}

// runLXC runs a program in a container whose configuration has more lines.
func (w *world) runLXC(ctx context.Context, lines []string, args ...string) ([]byte, error) {
	dir, err := os.MkdirTemp(w.dir, "lxc-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	root, file := filepath.Join(dir, "rootfs"), filepath.Join(dir, "config")
	if err := errors.Join(os.Chmod(dir, 0o755), w.tree(root, false)); err != nil {
		return nil, err
	}
	config := []string{"lxc.include = /usr/share/lxc/config/common.conf", "lxc.rootfs.path = dir:" + root, "lxc.uts.name = c", "lxc.net.0.type = empty", "lxc.net.0.flags = up"}
	for _, b := range w.binds {
		config = append(config, fmt.Sprintf("lxc.mount.entry = %s %s none %s 0 0", b.source, strings.TrimPrefix(b.at, "/"), strings.Join(append([]string{"bind"}, b.options...), ",")))
	}
	for _, v := range append(w.environ(), "HOME=/root") {
		config = append(config, "lxc.environment = "+v)
	}
	if err := os.WriteFile(file, []byte(strings.Join(append(config, lines...), "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	return output(exec.CommandContext(ctx, "lxc-execute", append([]string{"-n", "c", "-P", dir, "-f", file, "--"}, args...)...))
}
