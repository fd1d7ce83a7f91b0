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

	"golang.org/x/sys/unix"
)

// newcomer is the ordinary user who has README's commands run.
const newcomer = 4242

// play has a shell run a command in a copy of the module below a home, as a newcomer does in a clone: in a container with Docker's current
// profile, as root or not, or on this machine as a user whose home is below /home. What has been compiled and fetched is there.
func (w *world) play(ctx context.Context, where, command string) error {
	home, uid := "/home/newcomer", newcomer
	if where == "container, root" {
		home, uid = "/root", 0
	}
	dir := filepath.Join(w.dir, "home")
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return err
	}
	from := strings.Fields(string(caches))
	script := exec.Command("bash", "-ec", `
		mkdir -p "$1/src/holdfast"
		tar --exclude=./.git --exclude=./.ci/cache -cf - . | tar -C "$1/src/holdfast" -xf -
		for pair in "$3:.cache/go-build" "$4:go/pkg/mod"; do
			mkdir -p "$1/${pair#*:}" "$1/.upper/${pair#*:}" "$1/.work/${pair#*:}"
		done
		chown -R "$2:$2" "$1"
		for pair in "$3:.cache/go-build" "$4:go/pkg/mod"; do
			mount -t overlay -o "lowerdir=${pair%%:*},upperdir=$1/.upper/${pair#*:},workdir=$1/.work/${pair#*:},metacopy=on" overlay "$1/${pair#*:}"
			chown -R "$2:$2" "$1/${pair#*:}" # of the owners alone there is a copy (metacopy)
		done`, "bash", dir, fmt.Sprint(uid), from[0], from[1])
	if _, err := output(script); err != nil {
		return err
	}
	command = "cd; cd src/holdfast; exec 2>&1; " + command
	env := []string{"HOME=" + home, "USER=newcomer", "LOGNAME=newcomer", "GOPROXY=off", "GOTOOLCHAIN=local", "TMPDIR=/tmp"}
	var out []byte
	if strings.HasPrefix(where, "container") {
		w.binds = append(w.binds, bind{dir, home, nil})
		out, err = w.runContainer(ctx, "runc", nil, container{uid: uid, filter: w.moby, caps: defaultCaps, masked: true, docker: true, env: env}, []string{"bash", "-ec", command})
	} else {
		users := filepath.Join(w.dir, "passwd")
		text, e := os.ReadFile("/etc/passwd")
		text = fmt.Appendf(text, "newcomer:x:%d:%d::%s:/bin/bash\n", uid, uid, home)
		if err := errors.Join(e, os.WriteFile(users, text, 0o644), unix.Mount(users, "/etc/passwd", "", unix.MS_BIND, ""),
			unix.Mount("tmpfs", "/home", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"), os.Mkdir(home, 0o755), unix.Mount(dir, home, "", unix.MS_BIND|unix.MS_REC, "")); err != nil {
			return err
		}
		c := exec.CommandContext(ctx, "bash", "-ec", command)
		c.Dir, c.Env = "/", append(env, "PATH="+from[2]+"/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		out, err = output(c)
	}
	os.Stdout.Write(out)
	return err
}
