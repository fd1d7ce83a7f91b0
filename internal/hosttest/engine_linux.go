package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// startDocker starts Docker's daemon with nothing but its own directories, and imports the image. It ends with this process's
// namespaces.
func (w *world) startDocker(ctx context.Context) error {
	daemon, err := exec.LookPath("dockerd")
	if err != nil {
		return errors.New("dockerd is not installed (apt-get install docker.io)")
	}
	dir := filepath.Join(w.dir, "docker")
	if err := os.Mkdir(dir, 0o711); err != nil {
		return err
	}
	socket := filepath.Join(dir, "s")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(daemon, "--data-root", dir+"/data", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "--host", "unix://"+socket, "--config-file", dir+"/none.json",
		"--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--bridge=none", "--storage-driver=vfs", "--cgroup-parent="+w.cgroup)
	if err := os.WriteFile(dir+"/none.json", []byte("{}"), 0o644); err != nil {
		return err
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		if s, err := net.Dial("unix", socket); err == nil {
			s.Close()
			break
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			return fmt.Errorf("dockerd ended: %w: %s", err, lines[len(lines)-1])
		case <-ctx.Done():
			return fmt.Errorf("dockerd does not listen: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	os.Setenv("DOCKER_HOST", "unix://"+socket)
	return w.load(ctx, engine{program: "docker"})
}

// An engine is a command line that docker's options are given to.
type engine struct {
	program  string
	flags    []string
	rootless string // "": it is run as root. Else its directory, and it is root of a user namespace, as one that an ordinary user has started
}

// command is the engine's with arguments.
func (e engine) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, e.program, append(slices.Clone(e.flags), args...)...)
	if e.rootless != "" {
		// What podman's first process hands to the one in the namespace, which newuidmap(1) would have made.
		c.Env = append(os.Environ(), "_CONTAINERS_USERNS_CONFIGURED=done", "_CONTAINERS_ROOTLESS_UID=1000", "_CONTAINERS_ROOTLESS_GID=1000", "XDG_RUNTIME_DIR="+e.rootless, "HOME="+e.rootless, "TMPDIR="+e.rootless)
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: shifted, Size: 65536}}
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{}}
		c.Dir = "/"
	}
	return c
}

// load has the engine import the image.
func (w *world) load(ctx context.Context, e engine) error {
	c := e.command(ctx, "import", "-", imageName)
	c.Stdin = bytes.NewReader(w.image())
	_, err := output(c)
	return err
}

const imageName = "holdfast-hosts:1"

// runEngine runs a program by docker or podman.
func (w *world) runEngine(ctx context.Context, e engine, options, args []string) ([]byte, error) {
	list := []string{"run", "--rm", "--network=none"}
	for _, v := range w.environ() {
		list = append(list, "-e", v)
	}
	list = append(list, w.volumes()...)
	list = append(append(list, options...), imageName)
	return output(e.command(ctx, append(list, args...)...))
}

// podman is Podman kept to a directory, and from what it would ask of a service manager.
func (w *world) podman(name string) engine {
	dir := filepath.Join(w.dir, name)
	return engine{program: "podman", flags: []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--events-backend=none", "--runtime=runc"}}
}

func (w *world) rootlessPodman() engine {
	e := w.podman("rootless")
	e.rootless = filepath.Join(w.dir, "rootless")
	return e
}

// startPodman imports the image.
func (w *world) startPodman(e engine) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if _, err := exec.LookPath("podman"); err != nil {
			return errors.New("podman is not installed (apt-get install podman)")
		}
		if e.rootless != "" {
			if err := errors.Join(os.Mkdir(e.rootless, 0o700), os.Chown(e.rootless, shifted, shifted)); err != nil {
				return err
			}
		}
		if err := w.load(ctx, e); err != nil {
			return err
		}
		_, err := w.runEngine(ctx, e, nil, []string{hosttest, "tool", "nop"})
		return err
	}
}
