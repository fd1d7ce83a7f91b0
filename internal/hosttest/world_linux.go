package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A world is what the hosts of one run share: a directory, the binds that make a container's system, and a cgroup.
type world struct {
	dir    string // of this run; removed with it
	cgroup string // below each hierarchy's root: "/holdfast-hosts-123"
	binds  []bind
	path   string // PATH in containers
	long   bool   // the long works are done on every host

	moby, containerd []byte // their default profiles

	missing []string // what could not be run
}

type bind struct {
	source, at string
	options    []string
}

// profiles are Docker's and containerd's, from the module's root.
const profiles = "docs/hosts/testdata/"

// newWorld looks at what this machine's system consists of. Containers get it read-only.
func newWorld(dir, cgroup string) (*world, error) {
	w := &world{dir: dir, cgroup: cgroup, path: "/usr/local/bin:/usr/bin:/bin"}
	exe := filepath.Join(dir, "hosttest") // where go run has it, none but this user reaches it
	text, err := os.ReadFile("/proc/self/exe")
	if err := errors.Join(err, os.WriteFile(exe, text, 0o755), os.Mkdir(filepath.Join(dir, "work"), 0o755)); err != nil {
		return nil, err
	}
	first := filepath.Join(dir, "quickstart")
	build := exec.Command("go", "build", "-o", first, "./examples/quickstart")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := output(build); err != nil {
		return nil, err
	}
	w.binds = []bind{{"/usr", "/usr", []string{"ro"}}, {exe, hosttest, []string{"ro"}}, {first, quickstart, []string{"ro"}}, {filepath.Join(dir, "work"), "/work", nil}}
	if root, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
		at := strings.TrimSpace(string(root))
		w.path = at + "/bin:" + w.path
		if !strings.HasPrefix(at, "/usr/") {
			w.binds = append(w.binds, bind{at, at, []string{"ro"}})
		}
	}
	if w.moby, err = os.ReadFile(profiles + "moby-profiles-seccomp-v0.2.3.json"); err != nil {
		return nil, err
	}
	if w.containerd, err = os.ReadFile(profiles + "containerd-v1.7.27-seccomp.json"); err != nil {
		return nil, err
	}
	return w, os.WriteFile(filepath.Join(dir, "hosts"), []byte("127.0.0.1 localhost\n"), 0o644)
}

// hosttest is this program in a container, and quickstart README's first one.
const hosttest, quickstart = "/hosttest", "/quickstart"

func (w *world) environ() []string {
	return []string{"PATH=" + w.path, tokenVariable + "=hidden"}
}

// names are the directories of a container's root, and links in the place of those that this machine has as links.
func (w *world) names() (dirs []string, links map[string]string) {
	dirs = []string{"dev", "etc", "proc", "sys", "tmp", "usr", "work", "root", "var", "run"}
	links = map[string]string{}
	for _, name := range []string{"bin", "sbin", "lib", "lib64", "lib32", "libx32"} {
		if to, err := os.Readlink("/" + name); err == nil {
			links[name] = to
		}
	}
	return dirs, links
}

// etc are the files of a container's /etc.
var etc = map[string]string{
	"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
	"etc/group":  "root:x:0:\n",
	"etc/hosts":  "127.0.0.1 localhost\n",
}

// tree makes a container's root.
func (w *world) tree(at string, docker bool) error {
	dirs, links := w.names()
	for _, d := range append(dirs, "") {
		if err := os.MkdirAll(filepath.Join(at, d), 0o755); err != nil {
			return err
		}
	}
	err := os.Chmod(filepath.Join(at, "tmp"), 0o777|fs.ModeSticky)
	for name, to := range links {
		err = errors.Join(err, os.Symlink(to, filepath.Join(at, name)))
	}
	files := map[string]string{hosttest: "", quickstart: ""}
	if docker {
		files[".dockerenv"] = ""
	}
	for _, m := range []map[string]string{etc, files} {
		for name, text := range m {
			err = errors.Join(err, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
		}
	}
	for _, b := range w.binds[1:] {
		if fi, e := os.Stat(b.source); e == nil && fi.IsDir() {
			err = errors.Join(err, os.MkdirAll(filepath.Join(at, b.at), 0o755))
		}
	}
	return err
}

// image is the same as a tar archive, for an engine that mounts the rest itself.
func (w *world) image() []byte {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	dirs, links := w.names()
	for _, d := range dirs {
		mode := int64(0o755)
		if d == "tmp" {
			mode = 0o1777
		}
		t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: mode})
	}
	for name, to := range links {
		t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777})
	}
	for name, text := range etc {
		t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))})
		t.Write([]byte(text))
	}
	t.Close()
	return b.Bytes()
}

// volumes are the binds as options of docker and podman.
func (w *world) volumes() []string {
	var list []string
	for _, b := range w.binds {
		list = append(list, "-v", strings.Join(append([]string{b.source, b.at}, b.options...), ":"))
	}
	return list
}

// fresh empties the work directory and gives it to a user.
func (w *world) fresh(uid int) error {
	work := filepath.Join(w.dir, "work")
	list, err := filepath.Glob(work + "/*")
	for _, p := range list {
		err = errors.Join(err, os.RemoveAll(p))
	}
	return errors.Join(err, os.Chown(work, uid, uid))
}

// settle makes the namespaces that this process has got its own: its mounts reach nowhere, /proc is its processes', lo is up.
func settle() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make every mount private: %w", err)
	}
	for unix.Unmount("/proc", unix.MNT_DETACH) == nil { // beneath the new one it would show what a service manager covers (mnt_already_visible of fs/namespace.c)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	unix.Unmount("/sys/fs/cgroup/unified", 0) // crun does not start where it sees version 2 beside version 1 ("hybrid mode not supported")
	return loopbackUp()
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}
