package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/docs/hosts"
	"github.com/holdfast-dev/holdfast/internal/host"
	"golang.org/x/sys/unix"
)

// A habitat is a host and a user on it: a row of the table.
type habitat struct {
	name       string
	user       string
	uid        int                             // the owner of /work outside
	start      func(ctx context.Context) error // what its engine takes, once; nil: nothing
	run        func(ctx context.Context, options []string, args ...string) ([]byte, error)
	unfiltered bool                        // no filter can be loaded there, so that a weaker sandbox is refused too
	direct     bool                        // it is this machine, and no container
	long       bool                        // the long works are done, though not asked for: pip costs a second in each sandbox
	ways       []host.Way                  // in the error beside those that make namespaces
	options    func(way host.Way) []string // of run, by which a way out is gone; nil: that way is none of this runtime's
}

// habitats are all of them.
func (w *world) habitats() []habitat {
	var list []habitat
	plain := func(ctx context.Context, _ []string, args ...string) ([]byte, error) {
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Env = append(w.environ(), "HOME=/root")
		c.Dir = "/"
		return output(c)
	}
	list = append(list, habitat{name: bare, user: "root", direct: true, run: plain})
	docker := once(func(ctx context.Context) error {
		if err := w.startDocker(ctx); err != nil {
			return err
		}
		_, err := w.runEngine(ctx, engine{program: "docker"}, nil, []string{hosttest, "tool", "nop"})
		return err
	})
	for _, v := range []struct {
		name, user string
		uid        int
		options    []string
	}{
		{"Docker", "root", 0, nil}, {"Docker", "1000", 1000, []string{"--user=1000:1000"}}, {"Docker", "1000, read-only", 1000, []string{"--user=1000:1000", "--read-only", "--tmpfs=/tmp"}},
		{"Docker, `--cap-add SYS_ADMIN`", "root", 0, []string{"--cap-add=SYS_ADMIN"}}, // whose filter refuses pivot_root(2) nevertheless; and lo is not raised
		{"Docker, `--cap-add SYS_ADMIN --cap-add NET_ADMIN`", "root", 0, []string{"--cap-add=SYS_ADMIN", "--cap-add=NET_ADMIN"}},
	} {
		list = append(list, habitat{name: v.name, user: v.user, uid: v.uid, long: v.user == "1000", start: docker, options: w.engineOptions("docker run"), run: func(ctx context.Context, options []string, args ...string) ([]byte, error) {
			return w.runEngine(ctx, engine{program: "docker"}, append(options, v.options...), args)
		}})
	}
	for _, e := range []engine{w.podman("podman"), w.rootlessPodman()} {
		h := habitat{name: "Podman", user: "root", start: once(w.startPodman(e)), options: w.engineOptions("podman run"), run: func(ctx context.Context, options []string, args ...string) ([]byte, error) {
			return w.runEngine(ctx, e, options, args)
		}}
		if e.rootless != "" {
			h.name, h.uid = "Podman, rootless", shifted
		}
		list = append(list, h)
	}
	list = append(list, w.oci(privileged, "runc", container{caps: allCaps()}, nil))
	list = append(list, w.limited())
	for _, uid := range []int{0, 1000} {
		list = append(list, w.oci("Docker's current profile (runc)", "runc", container{uid: uid, filter: w.moby, caps: defaultCaps, masked: true, docker: true}, w.engineOptions("docker run")))
		list = append(list, w.oci(pod, "runc", w.pod(uid), podOptions))
		if uid == 0 {
			dropped := w.pod(uid)
			dropped.caps, dropped.noNew = nil, true
			list = append(list, w.oci("a pod, RuntimeDefault, capabilities dropped (runc)", "runc", dropped, podOptions))
		}
		list = append(list, w.oci("a pod, RuntimeDefault (crun)", "crun", w.pod(uid), podOptions))
		list = append(list, w.oci("gVisor", "runsc", container{uid: uid, caps: defaultCaps}, nil))
	}
	return list
}

// limited is a host whose root allows no user namespaces by a sysctl, which a container's user namespace has for itself.
func (w *world) limited() habitat {
	const setting = "user.max_user_namespaces"
	h := w.oci("`"+setting+"=0` (runc)", "runc", container{userNS: true, caps: append(slices.Clone(defaultCaps), "CAP_SYS_RESOURCE")}, func(way host.Way) []string {
		if !strings.HasPrefix(way.In, "a shell of root's") {
			return nil
		}
		return []string{way.Text}
	})
	run := h.run
	h.user, h.uid = "1000", shifted+1000
	h.run = func(ctx context.Context, options []string, args ...string) ([]byte, error) {
		limit := "0"
		for _, o := range options {
			limit = strings.TrimPrefix(o, "sysctl -w "+setting+"=")
		}
		return run(ctx, nil, append([]string{hosttest, "limit", limit}, args...)...)
	}
	return h
}

// limit sets the number of user namespaces there may be, as root, and executes a program as uid 1000.
func limit(number string, args []string) error {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte(number), 0); err != nil {
		return err
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(1000), syscall.Setuid(1000)); err != nil {
		return err
	}
	return syscall.Exec(args[0], args, os.Environ())
}

// bare is this machine.
const bare = "no container"

// pod is a container as Kubernetes makes it.
const pod = "a pod, RuntimeDefault (runc)"

// privileged is the host on which the acts are tried without a sandbox, too.
const privileged = "a privileged container (runc)"

// allCaps are the default ones and those that the acts would need, as far as this process could have them.
func allCaps() []string {
	caps := slices.Clone(defaultCaps)
	for name, c := range map[string]int{"SYS_ADMIN": unix.CAP_SYS_ADMIN, "NET_ADMIN": unix.CAP_NET_ADMIN, "SYS_PTRACE": unix.CAP_SYS_PTRACE, "SYS_NICE": unix.CAP_SYS_NICE,
		"SYS_BOOT": unix.CAP_SYS_BOOT, "SYS_TIME": unix.CAP_SYS_TIME, "SYS_MODULE": unix.CAP_SYS_MODULE, "SYSLOG": unix.CAP_SYSLOG, "BPF": unix.CAP_BPF, "PERFMON": unix.CAP_PERFMON,
		"SYS_PACCT": unix.CAP_SYS_PACCT, "DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH, "AUDIT_CONTROL": unix.CAP_AUDIT_CONTROL} {
		if n, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err == nil && n == 1 {
			caps = append(caps, "CAP_"+name)
		}
	}
	return caps
}

func (w *world) pod(uid int) container {
	c := container{uid: uid, filter: w.containerd, caps: defaultCaps, masked: true, env: []string{"KUBERNETES_SERVICE_HOST=192.0.2.1"}}
	if uid != 0 { // what the restricted Pod Security Standard asks for
		c.noNew, c.readOnly, c.caps = true, true, nil
	}
	return c
}

func dockerProfile() []byte {
	text, err := hosts.Files.ReadFile("docker-seccomp.json")
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}

// once is start for all hosts of an engine.
func once(start func(ctx context.Context) error) func(ctx context.Context) error {
	var err error
	done := false
	return func(ctx context.Context) error {
		if !done {
			done, err = true, start(ctx)
		}
		return err
	}
}

// engineOptions turns what is to be written behind "docker run" into options.
func (w *world) engineOptions(in string) func(way host.Way) []string {
	return func(way host.Way) []string {
		if in == "docker run" && strings.HasPrefix(way.In, "compose.yaml") {
			return composeOptions(way.Text)
		}
		if way.In != in && !strings.HasPrefix(way.In, in+", ") {
			return nil
		}
		var list []string
		for line := range strings.Lines(way.Text) {
			if !strings.HasPrefix(line, "#") {
				list = append(list, strings.Fields(line)...)
			}
		}
		for i, o := range list {
			if o == "seccomp=docker-seccomp.json" {
				file := filepath.Join(w.dir, "docker-seccomp.json")
				os.WriteFile(file, dockerProfile(), 0o644)
				list[i] = "seccomp=" + file
			}
		}
		return list
	}
}

// composeOptions are the options of "docker run" that a service's lists mean: compose hands each value on as it is.
func composeOptions(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		name, values, isList := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), "]"), ": [")
		if !isList {
			continue
		}
		for v := range strings.SplitSeq(values, ", ") {
			list = append(list, map[string]string{"security_opt": "--security-opt=", "cap_add": "--cap-add="}[name]+v)
		}
	}
	return list
}

// podOptions are a way out in a pod's manifest; what it says is read where the container is made.
func podOptions(way host.Way) []string {
	if way.In != "the pod's manifest" {
		return nil
	}
	return []string{way.Text}
}

// oci is a host that an OCI runtime makes.
func (w *world) oci(name, program string, c container, options func(host.Way) []string) habitat {
	flags := map[string][]string{"crun": {"--cgroup-manager=disabled"}, "runsc": {"--network=none", "--platform=systrap", "--ignore-cgroups", "--host-uds=none"}}[program]
	h := habitat{name: name, user: strconv.Itoa(c.uid), uid: c.uid, options: options, long: name == pod && c.uid == 0}
	if c.uid == 0 {
		h.user = "root"
	}
	if c.readOnly {
		h.user += ", read-only"
	}
	h.start = func(ctx context.Context) error {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed", program)
		}
		_, err := h.run(ctx, nil, hosttest, "tool", "nop") // what does not start without the library is the machine's
		return err
	}
	h.run = func(ctx context.Context, options []string, args ...string) ([]byte, error) {
		c, text := c, strings.Join(options, "\n")
		if strings.Contains(text, "Unconfined") || strings.Contains(text, "seccomp=unconfined") {
			c.filter = nil
		}
		if strings.Contains(text, "docker-seccomp.json") {
			c.filter = dockerProfile()
		}
		if strings.Contains(text, "procMount: Unmasked") || strings.Contains(text, "systempaths=unconfined") {
			c.masked = false
		}
		if strings.Contains(text, "SETFCAP") {
			c.caps = append(slices.Clone(c.caps), "CAP_SETFCAP")
		}
		if strings.Contains(text, "hostUsers: false") {
			c.userNS = true
			if err := os.Chown(filepath.Join(w.dir, "work"), c.uid+shifted, c.uid+shifted); err != nil {
				return nil, err
			}
		}
		return w.runContainer(ctx, program, flags, c, args)
	}
	return h
}

// ask runs this program as the harness there. What an engine fails at is asked once more, and is an [unableError] if the engine
// then fails without the library, too.
func (w *world) ask(ctx context.Context, h habitat, options []string, args ...string) (a account, err error) {
	command := []string{hosttest, "inside", "/work"}
	if h.direct {
		command = []string{filepath.Join(w.dir, "hosttest"), "inside", filepath.Join(w.dir, "work")}
	}
	if w.long || h.long {
		args = append(args, "long")
	}
	var out []byte
	for range 2 {
		if err := w.fresh(h.uid); err != nil {
			return a, err
		}
		if out, err = h.run(ctx, options, append(command, args...)...); err == nil {
			break
		}
		if _, e := h.run(ctx, options, command[0], "tool", "nop"); e != nil {
			return a, unableError(e.Error())
		}
		fmt.Printf("asked once more: %s (%s): %v\n", h.name, h.user, err)
	}
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return a, fmt.Errorf("its account: %w: %q", err, out)
	}
	if a.Fatal != "" {
		return a, errors.New(a.Fatal)
	}
	return a, nil
}
