package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A container is a running one, in which commands are executed: docker's, where a daemon answers, and otherwise crun's.
type container struct {
	name string // of the contender
	exec []string
	on   func(func() error) error // calls a function on the thread that can reach it
	end  func()
}

// run executes a program in the container, and waits for its end.
func (c *container) run(program string) error {
	return c.on(func() error {
		out, err := exec.Command(c.exec[0], append(c.exec[1:len(c.exec):len(c.exec)], program)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// newContainer starts a container whose files are dir's. The error says why there is none.
func newContainer(dir string) (*container, error) {
	if c, err := newDocker(); err == nil {
		return c, nil
	}
	return newCrun(dir)
}

// newDocker starts a container of an image that the daemon has; it downloads none.
func newDocker() (*container, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "images", "-q").Output()
	images := strings.Fields(string(out))
	if err != nil || len(images) == 0 {
		return nil, errors.Join(errors.New("no docker daemon that has an image"), err)
	}
	id, err := exec.Command("docker", "run", "-d", "--pull", "never", images[0], "sleep", "1000000").Output()
	if err != nil {
		return nil, err
	}
	name := strings.TrimSpace(string(id))
	return &container{"docker exec", []string{"docker", "exec", name}, func(f func() error) error { return f() },
		func() { exec.Command("docker", "rm", "-f", name).Run() }}, nil
}

// newCrun starts a container by crun, without a cgroup, in a new mount namespace, where crun finds no hierarchy of cgroups that it
// might refuse or change.
func newCrun(dir string) (*container, error) {
	path, err := exec.LookPath("crun")
	if err != nil {
		return nil, errors.New("crun is not installed")
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("crun is measured as root only")
	}
	if err := makeBundle(dir); err != nil {
		return nil, err
	}
	base := []string{path, "--root", filepath.Join(dir, "run"), "--cgroup-manager=disabled"}
	const name = "holdfast-bench"
	on, leave := aside()
	c := &container{"crun exec", append(base, "exec", name), on, func() {
		on(func() error { return exec.Command(path, append(base[1:], "delete", "-f", name)...).Run() })
		leave()
	}}
	err = on(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return os.NewSyscallError("mount", err)
		}
		if err := unix.Mount("none", "/sys/fs/cgroup", "tmpfs", 0, ""); err != nil {
			return os.NewSyscallError("mount", err)
		}
		log := filepath.Join(dir, "log")
		start := exec.Command(path, append(base[1:], "--log", "file:"+log, "run", "-d", "-b", dir, name)...)
		if err := start.Run(); err != nil { // the container has the descriptors that crun has: no pipe
			text, _ := os.ReadFile(log)
			return fmt.Errorf("crun run: %w: %s", err, text)
		}
		return nil
	})
	if err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// makeBundle makes an OCI bundle whose root shows this machine's /usr.
func makeBundle(dir string) error {
	root := filepath.Join(dir, "rootfs")
	for _, name := range []string{"usr", "proc", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	type object = map[string]any
	none := []string{}
	namespaces := []object{}
	for _, kind := range []string{"pid", "network", "ipc", "uts", "mount"} {
		namespaces = append(namespaces, object{"type": kind})
	}
	text, err := json.Marshal(object{
		"ociVersion": "1.0.0",
		"process": object{"user": object{"uid": 0, "gid": 0}, "args": []string{"sleep", "1000000"}, "env": []string{"PATH=/usr/bin"}, "cwd": "/", "noNewPrivileges": true,
			"capabilities": object{"bounding": none, "effective": none, "permitted": none}},
		"root": object{"path": "rootfs", "readonly": true},
		"mounts": []object{
			{"destination": "/proc", "type": "proc", "source": "proc"},
			{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
			{"destination": "/usr", "type": "bind", "source": "/usr", "options": []string{"rbind", "ro"}},
		},
		"linux": object{"namespaces": namespaces},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644)
}

// aside starts a thread that calls functions one after another, and ends with the namespaces that they have made.
func aside() (on func(func() error) error, leave func()) {
	calls, answers := make(chan func() error), make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: Go ends the thread
		for f := range calls {
			answers <- f()
		}
	}()
	return func(f func() error) error { calls <- f; return <-answers }, func() { close(calls) }
}
