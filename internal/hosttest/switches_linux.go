package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/host"
	"golang.org/x/sys/unix"
)

// A sysctl is a setting of the machine's that forbids user namespaces by a value.
type sysctl struct{ name, bad, good, with string } // with: a script that does what its distribution does at boot

var sysctls = []sysctl{
	{"user.max_user_namespaces", "0", "15000", ""},
	{"kernel.unprivileged_userns_clone", "0", "1", ""}, // of Debian's and Ubuntu's kernels
	// Of Ubuntu's. A program without a profile gets that one in a user namespace, and with it no capability.
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "0", "apparmor_parser -r /etc/apparmor.d/unprivileged_userns"},
}

func (s sysctl) file() string { return "/proc/sys/" + strings.ReplaceAll(s.name, ".", "/") }

// changed is this machine itself, once with each setting that it knows, on which is done what New's error says. It is for a virtual
// machine (.ci/vm): what it changes is the machine's.
func (w *world) changed() []habitat {
	var list []habitat
	for _, s := range sysctls {
		h := habitat{name: fmt.Sprintf("`%s=%s`, Linux %s, emulated", s.name, s.bad, release()), user: "1000", uid: 1000, direct: true, options: hostOptions}
		h.start = func(ctx context.Context) error {
			if _, err := os.Stat(s.file()); err != nil || s.with == "" {
				return err
			}
			_, err := output(exec.CommandContext(ctx, "/bin/sh", "-ec", s.with))
			return err
		}
		h.run = func(ctx context.Context, options []string, args ...string) ([]byte, error) {
			if err := os.WriteFile(s.file(), []byte(s.bad), 0); err != nil {
				return nil, err
			}
			defer os.WriteFile(s.file(), []byte(s.good), 0)
			for _, script := range options {
				if _, err := output(exec.CommandContext(ctx, "/bin/sh", "-ec", script)); err != nil {
					return nil, err
				}
			}
			return w.asOrdinary(ctx, args)
		}
		list = append(list, h)
	}
	return slices.Concat(list, w.services(), w.lxc(), w.lxd())
}

// release is the kernel's.
func release() string {
	var u unix.Utsname
	unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}

// asOrdinary runs a program as uid 1000.
func (w *world) asOrdinary(ctx context.Context, args []string) ([]byte, error) {
	home := filepath.Join(w.dir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chown(home, 1000, 1000); err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env, c.Dir = append(w.environ(), "HOME="+home), "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	return output(c)
}

// hostOptions are scripts that do on this machine what a way out says.
func hostOptions(way host.Way) []string {
	file, then, isFile := strings.Cut(way.In, ", then ")
	switch {
	case strings.HasPrefix(way.In, "a shell of root's"):
		return []string{way.Text}
	case way.In == "/etc/sysctl.d/60-holdfast.conf": // which the next boot reads
		file, then, isFile = way.In, "sysctl -p of it", true
	}
	if !isFile {
		return nil
	}
	return []string{"mkdir -p " + filepath.Dir(file) + " && cat >" + file + " <<'END'\n" + way.Text + "\nEND", strings.Replace(then, " of it", " "+file, 1)}
}
