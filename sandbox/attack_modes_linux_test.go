package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _ = offer(attacks, "setuid bits", setIDActs)

// setsID returns an act that makes a file with one of the bits, at the path that it is given.
func setsID(make func(p string) error) func(ground) error {
	return func(f ground) error {
		p := filepath.Join(f.write, "set")
		if err := make(p); err != nil {
			return shortError(err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return shortError(err)
		}
		if st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0 {
			return fmt.Errorf("it has mode %o", st.Mode)
		}
		return nil
	}
}

func existing(change func(p string) error) func(ground) error {
	return setsID(func(p string) error { return errors.Join(os.WriteFile(p, []byte("x"), 0o755), change(p)) })
}

func ofOpen(fd int, err error) error {
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// setIDActs give a file the rights of its owner or group, for every other account of the machine.
var setIDActs = []act{
	{name: "chmod u+s", tame: true, try: existing(func(p string) error { return syscall.Chmod(p, 0o4755) })},
	{name: "chmod g+s", tame: true, try: existing(func(p string) error { return syscall.Chmod(p, 0o2755) })},
	{name: "chmod with more bits than a mode has", tame: true, try: existing(func(p string) error { return syscall.Chmod(p, 0xf0000|0o6755) })},
	{name: "fchmod", tame: true, try: existing(func(p string) error {
		fd, err := unix.Open(p, unix.O_RDONLY, 0)
		return errors.Join(err, unix.Fchmod(fd, 0o4755), unix.Close(fd))
	})},
	{name: "fchmodat", tame: true, try: existing(func(p string) error { return unix.Fchmodat(unix.AT_FDCWD, p, 0o4755, 0) })},
	{name: "fchmodat2", tame: true, try: existing(func(p string) error {
		const fchmodat2 = 452
		b, _ := unix.BytePtrFromString(p)
		at := unix.AT_FDCWD
		if _, _, e := unix.Syscall6(fchmodat2, uintptr(at), uintptr(unsafe.Pointer(b)), 0o4755, unix.AT_SYMLINK_NOFOLLOW, 0, 0); e != 0 {
			return e
		}
		return nil
	})},
	{name: "create with the bit", tame: true, try: setsID(func(p string) error { return ofOpen(unix.Open(p, unix.O_CREAT|unix.O_RDONLY, 0o4755)) })},
	{name: "create to write with the bit", tame: true, try: setsID(func(p string) error { return ofOpen(unix.Open(p, unix.O_CREAT|unix.O_WRONLY, 0o2755)) })},
	{name: "creat", tame: true, try: setsID(func(p string) error { return ofOpen(syscall.Creat(p, 0o4755)) })},
	{name: "openat2", tame: true, try: setsID(func(p string) error {
		return ofOpen(unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755}))
	})},
	{name: "a file without a name", tame: true, try: setsID(func(p string) error {
		fd, err := unix.Open(filepath.Dir(p), unix.O_TMPFILE|unix.O_RDWR, 0o4755)
		return errors.Join(err, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW))
	})},
	{name: "mknod", tame: true, try: setsID(func(p string) error { return unix.Mknod(p, unix.S_IFREG|0o4755, 0) })},
	{name: "mknodat", tame: true, try: setsID(func(p string) error { return unix.Mknodat(unix.AT_FDCWD, p, unix.S_IFREG|0o6755, 0) })},

	{name: "make a file executable", works: true, tame: true, try: func(f ground) error {
		p := filepath.Join(f.write, "run")
		if err := errors.Join(os.WriteFile(p, []byte("#!/bin/sh\n"), 0o644), os.Chmod(p, 0o755)); err != nil {
			return err
		}
		return unix.Access(p, unix.X_OK)
	}},
	{name: "make a sticky directory", works: true, tame: true, try: func(f ground) error {
		p := filepath.Join(f.write, "shared")
		if err := errors.Join(os.Mkdir(p, 0o777), unix.Chmod(p, 0o1777)); err != nil {
			return err
		}
		return hasMode(p, 0o1777)
	}},
	{name: "make a file with every mode bit that is left", works: true, tame: true, try: func(f ground) error {
		p := filepath.Join(f.write, "all")
		if err := errors.Join(ofOpen(unix.Open(p, unix.O_CREAT|unix.O_WRONLY, 0o700)), unix.Chmod(p, 0o1777)); err != nil {
			return err
		}
		return hasMode(p, 0o1777)
	}},
	{name: "make a directory whose files are its group's, as git init --shared does", works: true, tame: true, unheld: []string{noSupervisor}, try: func(f ground) error {
		p := filepath.Join(f.write, "group")
		if err := errors.Join(os.Mkdir(p, 0o755), unix.Chmod(p, 0o2775)); err != nil {
			return err
		}
		return hasMode(p, 0o2775)
	}},
}

func hasMode(p string, want uint32) error {
	var st unix.Stat_t
	if err := unix.Lstat(p, &st); err != nil {
		return err
	}
	if st.Mode&0o7777 != want {
		return fmt.Errorf("mode %o", st.Mode&0o7777)
	}
	return nil
}

// TestKernelNoFileGetsASetuidBit: with the supervisor, which takes the bits away, and without it, where the profile
// refuses the calls.
func TestKernelNoFileGetsASetuidBit(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	attackPlainly(t, "setuid bits")
	for _, supervisor := range []bool{true, false} {
		t.Run(fmt.Sprintf("supervisor %v", supervisor), func(t *testing.T) {
			eachWall(t, allSets, func(t *testing.T, w walls) {
				var base string
				if !supervisor {
					for i, a := range setIDActs { // the names of walls say which mechanisms there are
						if len(a.unheld) > 0 {
							setIDActs[i].unheld = []string{w.name, noNamespaces, noUserNS} // the last: see attackWith
						}
					}
				}
				attackWith(t, "setuid bits", w, func(b string, p *Policy) {
					base, p.Files.Protect.Off = b, !supervisor
				})
				err := filepath.WalkDir(filepath.Join(base, "write"), func(p string, d fs.DirEntry, err error) error {
					if err != nil || d.IsDir() {
						return err
					}
					info, err := d.Info()
					if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
						t.Errorf("%s has mode %v", strings.TrimPrefix(p, base), info.Mode())
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}
