package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/host"
	"golang.org/x/sys/unix"
)

// lxdBase is root of LXD's containers outside, where no /etc/subuid says otherwise.
const lxdBase = 1_000_000

// lxdInit is what a container's first process executes: this program.
const lxdInit = "/usr/sbin/init"

// intercepting are settings by which LXD's daemon carries out calls of a container's (its documentation, "System call interception"): it has the one
// seccomp listener that the kernel allows there.
var intercepting = []string{"security.nesting=true", "raw.lxc=lxc.apparmor.profile=unconfined", "security.syscalls.intercept.mknod=true"}

// lxd are containers of LXD's, without privileges as by default, in a virtual machine whose kernel has AppArmor.
func (w *world) lxd() []habitat {
	if _, err := exec.LookPath("lxd"); err != nil {
		return nil
	}
	start := once(w.startLXD)
	var list []habitat
	for _, v := range []struct {
		name     string
		uid      int
		settings []string
	}{
		{"LXD, AppArmor", 0, nil}, {"LXD, AppArmor", 1000, nil}, {"LXD, AppArmor, `security.nesting=true`", 0, intercepting[:1]}, {"LXD, unconfined, `" + intercepting[2] + "`", 0, intercepting},
	} {
		h := habitat{name: fmt.Sprintf("%s, Linux %s, emulated", v.name, release()), user: "root", uid: lxdBase + v.uid, start: start}
		if v.uid != 0 {
			h.user = fmt.Sprint(v.uid)
		}
		h.options = func(way host.Way) []string {
			if way.In != "lxc" && !strings.HasPrefix(way.In, "lxc, ") {
				return nil
			}
			return []string{way.Text}
		}
		h.run = func(ctx context.Context, options []string, args ...string) ([]byte, error) {
			return w.runLXD(ctx, v.uid, v.settings, options, args)
		}
		if len(v.settings) == len(intercepting) {
			h.ways = []host.Way{{In: "lxc", Text: "lxc config set NAME security.syscalls.intercept.mknod=false && lxc restart NAME"}}
		}
		list = append(list, h)
	}
	return list
}

// startLXD starts lxcfs, without which a container's /proc would have no covers, and LXD's daemon, and imports the image. They end with this process's namespaces.
func (w *world) startLXD(ctx context.Context) error {
	dir := filepath.Join(w.dir, "lxd")
	rootfs := filepath.Join(dir, "image", "rootfs")
	err := errors.Join(os.MkdirAll(rootfs, 0o755), w.tree(rootfs, false), os.MkdirAll("/var/lib/lxcfs", 0o755), os.MkdirAll("/var/log/lxd", 0o755),
		os.MkdirAll("/usr/lib/x86_64-linux-gnu/lxc", 0o755), // what its package makes
		os.WriteFile(filepath.Join(dir, "image", "metadata.yaml"), []byte("architecture: x86_64\ncreation_date: 1\n"), 0o644))
	if err != nil {
		return err
	}
	for _, daemon := range [][]string{{"lxcfs", "/var/lib/lxcfs"}, {"lxd"}} {
		log, err := os.Create(filepath.Join(dir, daemon[0]+".log"))
		if err != nil {
			return err
		}
		defer log.Close()
		c := exec.Command(daemon[0], daemon[1:]...)
		c.Stdout, c.Stderr = log, log
		if err := c.Start(); err != nil {
			return err
		}
		go c.Wait()
	}
	for !isFUSE("/var/lib/lxcfs") {
		select {
		case <-ctx.Done():
			return fmt.Errorf("lxcfs mounts nothing: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	_, err = output(exec.CommandContext(ctx, "/bin/sh", "-ec", `cd "$0"
lxd waitready --timeout=300
lxd init --preseed <<'END'
storage_pools:
- name: default
  driver: dir
profiles:
- name: default
  devices:
    root: {path: /, pool: default, type: disk}
END
tar -cf image.tar -C image metadata.yaml rootfs
lxc image import image.tar --alias holdfast`, dir))
	return err
}

// isFUSE reports whether a FUSE file system is mounted at a path.
func isFUSE(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && s.Type == unix.FUSE_SUPER_MAGIC
}

// runLXD runs a program in a container with settings, after scripts in which NAME is the container's.
func (w *world) runLXD(ctx context.Context, uid int, settings, scripts, args []string) ([]byte, error) {
	const name = "c"
	lxc := func(args ...string) error {
		_, err := bounded(ctx, "lxc", args...)
		return err
	}
	create := []string{"init", "holdfast", name}
	for _, s := range settings {
		create = append(create, "--config", s)
	}
	defer lxc("delete", "--force", name) // what a call that took too long has made, too
	if err := lxc(create...); err != nil {
		return nil, err
	}
	for i, b := range append(w.binds, bind{w.binds[1].source, lxdInit, []string{"ro"}}) {
		device := []string{"config", "device", "add", name, fmt.Sprintf("bind%d", i), "disk", "source=" + b.source, "path=" + b.at}
		if len(b.options) > 0 {
			device = append(device, "readonly=true")
		}
		if err := lxc(device...); err != nil {
			return nil, err
		}
	}
	ready := []string{"exec", name, "--", hosttest, "ready"}
	if err := lxc("start", name); err != nil {
		return nil, err
	}
	if err := lxc(ready...); err != nil {
		return nil, err
	}
	for _, script := range scripts {
		if _, err := bounded(ctx, "/bin/sh", "-ec", strings.ReplaceAll(script, "NAME", name)); err != nil {
			return nil, err
		}
		if err := lxc(ready...); err != nil {
			return nil, err
		}
		if !strings.Contains(script, "raw.apparmor=") {
			continue
		}
		if err := underProfile(ctx, name); err != nil {
			return nil, err
		}
	}
	run := []string{"exec", name, "--user", fmt.Sprint(uid), "--group", fmt.Sprint(uid)}
	for _, v := range append(w.environ(), "HOME=/root") {
		run = append(run, "--env", v)
	}
	return bounded(ctx, "lxc", append(append(run, "--"), args...)...)
}

// underProfile returns an error if a container's first process is under no AppArmor profile of LXD's. Inside its namespace of profiles it is "unconfined".
func underProfile(ctx context.Context, name string) error {
	pid, err := bounded(ctx, "lxc", "list", name, "--columns=p", "--format=csv")
	if err != nil {
		return err
	}
	label, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/attr/current")
	if err == nil && !strings.HasPrefix(string(label), "lxd-"+name) {
		err = fmt.Errorf("the container's first process is under the AppArmor profile %q", label)
	}
	return err
}

// bounded runs a program of LXD's, which waits for a container or the daemon without end.
func bounded(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, fmt.Errorf("%s %s took more than five minutes", program, args))
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.WaitDelay = time.Second // what it has started may have its pipes
	out, err := output(c)
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return out, err
}
