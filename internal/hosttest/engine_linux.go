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
	"strings"
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
	return w.load(ctx, "docker")
}

// load has an engine import the image.
func (w *world) load(ctx context.Context, engine string, flags ...string) error {
	c := exec.CommandContext(ctx, engine, append(flags, "import", "-", imageName)...)
	c.Stdin = bytes.NewReader(w.image())
	_, err := output(c)
	return err
}

const imageName = "holdfast-hosts:1"

// runEngine runs a program by docker or podman.
func (w *world) runEngine(ctx context.Context, engine string, flags, options, args []string) ([]byte, error) {
	list := append(flags, "run", "--rm", "--network=none")
	for _, e := range w.environ() {
		list = append(list, "-e", e)
	}
	list = append(list, w.volumes()...)
	list = append(append(list, options...), imageName)
	return output(exec.CommandContext(ctx, engine, append(list, args...)...))
}

// podmanFlags keep Podman to a directory, and from what it would ask of a service manager.
func (w *world) podmanFlags() []string {
	dir := filepath.Join(w.dir, "podman")
	return []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--events-backend=none", "--runtime=runc"}
}

func (w *world) startPodman(ctx context.Context) error {
	if _, err := exec.LookPath("podman"); err != nil {
		return errors.New("podman is not installed (apt-get install podman)")
	}
	return w.load(ctx, "podman", w.podmanFlags()...)
}
