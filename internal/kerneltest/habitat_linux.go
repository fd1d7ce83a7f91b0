package kerneltest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// habitat is where a child lives: a directory with its home and its temporary
// files, the test binary by a path that its user can reach, and that user.
type habitat struct {
	dir, exe string
	env      []string
	setUser  bool
	uid, gid int
}

func newHabitat(c Child) (*habitat, error) {
	h := &habitat{uid: os.Geteuid(), gid: os.Getegid()}
	name := "root"
	if h.uid != 0 {
		name = strconv.Itoa(h.uid)
	}
	if c.As == Ordinary && h.uid == 0 {
		name, h.setUser = "nobody", true
		var err error
		if h.uid, h.gid, err = nobody(); err != nil {
			return nil, err
		}
	}
	var err error
	place := ""
	if c.Home != "" && strings.HasPrefix(os.TempDir(), topOf(c.Home)+"/") {
		place = "/tmp"
	}
	if h.dir, err = os.MkdirTemp(place, "kt"); err != nil {
		return nil, fmt.Errorf("kerneltest: %w", err)
	}
	if err := h.fill(c.Home); err != nil {
		return nil, errors.Join(fmt.Errorf("kerneltest: %w", err), os.RemoveAll(h.dir))
	}
	h.env = []string{"HOME=" + cmp.Or(c.Home, h.dir+"/home"), "TMPDIR=" + h.dir + "/tmp", "USER=" + name, "LOGNAME=" + name,
		// A program built with -race otherwise sleeps for a second as it exits.
		"GORACE=" + strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")}
	return h, nil
}

// fill makes the directories and the way to the binary.
func (h *habitat) fill(home string) error {
	if err := os.Chmod(h.dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"home", "tmp"} {
		dir := filepath.Join(h.dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := os.Chown(dir, h.uid, h.gid); err != nil {
			return err
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	h.exe = exe
	if covered := home != "" && strings.HasPrefix(exe, topOf(home)+"/"); !covered && (!h.setUser || reachable(exe)) {
		return nil
	}
	// "go test" keeps the binary in a directory of mode 0700.
	h.exe = filepath.Join(h.dir, filepath.Base(exe))
	if os.Link(exe, h.exe) == nil {
		return nil
	}
	return copyFile(h.exe, exe)
}

// topOf is the directory of the root that a path lies in, or is.
func topOf(p string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	return "/" + first
}

// reachable reports whether every user can walk to a path.
func reachable(path string) bool {
	for path != "/" {
		path = filepath.Dir(path)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}

func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// nobody returns the ids of the user of that name, or 65534, which is what the
// kernel calls it (/proc/sys/kernel/overflowuid).
func nobody() (uid, gid int, err error) {
	u, err := user.Lookup("nobody")
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) || errors.Is(err, os.ErrNotExist) {
		return 65534, 65534, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("kerneltest: user nobody: %w", err)
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		return 0, 0, fmt.Errorf("kerneltest: user nobody: %w", err)
	}
	gid, err = strconv.Atoi(strings.TrimSpace(u.Gid))
	if err != nil {
		return 0, 0, fmt.Errorf("kerneltest: user nobody: %w", err)
	}
	return uid, gid, nil
}
