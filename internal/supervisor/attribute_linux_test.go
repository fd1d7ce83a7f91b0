package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// userAttributes is the fact that files of the tests can have attributes of users.
var userAttributes = kerneltest.Fact{
	Name: "a file system for temporary files that holds user.* attributes", Since: kerneltest.Version{Major: 6, Minor: 6},
	Check: func() error {
		f, err := os.CreateTemp("", "attributes")
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		return unix.Fsetxattr(int(f.Fd()), "user.a", nil, 0)
	},
}

// anACL grants owner, group and others reading and executing.
func anACL() []byte {
	acl := []byte{2, 0, 0, 0} // version, then tag, permissions and id of owner, group and others
	for _, e := range []byte{0x01, 0x04, 0x20} {
		acl = append(acl, e, 0, 5, 0, 255, 255, 255, 255)
	}
	return acl
}

// attributeCalls are calls on extended attributes, in the order in which a program makes them, and what each ends with.
var attributeCalls = []struct {
	name string
	want error
	do   func() error
}{
	{"set one", nil, func() error { return unix.Setxattr("f", "user.a", []byte("one"), unix.XATTR_CREATE) }},
	{"set it again as a new one", unix.EEXIST, func() error { return unix.Setxattr("f", "user.a", nil, unix.XATTR_CREATE) }},
	{"replace it", nil, func() error { return unix.Setxattr("f", "user.a", []byte("two\x00three"), unix.XATTR_REPLACE) }},
	{"read it", nil, func() error { return holds("f", "user.a", "two\x00three") }},
	{"replace what is not there", unix.ENODATA, func() error { return unix.Setxattr("f", "user.none", nil, unix.XATTR_REPLACE) }},
	{"one without a value", nil, func() error { return unix.Setxattr("f", "user.empty", nil, 0) }},
	{"one of a directory, by its descriptor", nil, func() error { return byDescriptor("d", unix.O_RDONLY) }},
	{"one by a descriptor for writing", nil, func() error { return byDescriptor("f", unix.O_WRONLY) }},
	{"one of a file that cannot be read", nil, func() error { return unix.Setxattr("unreadable", "user.a", []byte("1"), 0) }},
	{"one through a link", nil, func() error {
		return errors.Join(unix.Setxattr("l", "user.l", []byte("1"), 0), holds("f", "user.l", "1"))
	}},
	{"one of the link itself", unix.EPERM, func() error { return unix.Lsetxattr("l", "user.a", []byte("1"), 0) }},
	{"a nameless file's", nil, func() error {
		fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
		return errors.Join(err, unix.Fsetxattr(fd, "user.a", []byte("1"), 0))
	}},
	{"many bytes", nil, func() error {
		err := unix.Setxattr("f", "user.many", bytes.Repeat([]byte("x"), 2000), 0)
		return errors.Join(err, holds("f", "user.many", strings.Repeat("x", 2000)))
	}},
	{"too many bytes", unix.E2BIG, func() error { return unix.Setxattr("f", "user.a", make([]byte, 1<<16+1), 0) }},
	{"a value in bad memory", unix.EFAULT, func() error { return rawSet("f", "user.a", 4096, 1) }},
	{"a name that is too long", unix.ERANGE, func() error { return unix.Setxattr("f", "user."+strings.Repeat("x", 251), nil, 0) }},
	{"no name", unix.ERANGE, func() error { return unix.Setxattr("f", "", nil, 0) }},
	{"a file that is not there", unix.ENOENT, func() error { return unix.Setxattr("none", "user.a", nil, 0) }},
	{"a closed descriptor", unix.EBADF, func() error { return unix.Fsetxattr(999, "user.a", nil, 0) }},
	{"remove one", nil, func() error { return unix.Removexattr("f", "user.a") }},
	{"remove it again", unix.ENODATA, func() error { return unix.Removexattr("f", "user.a") }},
	{"list them", nil, func() error {
		b := make([]byte, 256)
		n, err := unix.Listxattr("f", b)
		if !strings.Contains(string(b[:max(n, 0)]), "user.many\x00") {
			return fmt.Errorf("%q, %w", b[:max(n, 0)], err)
		}
		return nil
	}},

	{"an ACL", unix.EOPNOTSUPP, func() error { return unix.Setxattr("f", "system.posix_acl_access", anACL(), 0) }},
	{"an ACL for what will be made", unix.EOPNOTSUPP, func() error { return unix.Setxattr("d", "system.posix_acl_default", anACL(), 0) }},
	{"remove an ACL", unix.EOPNOTSUPP, func() error { return unix.Removexattr("f", "system.posix_acl_access") }},
	{"capabilities", unix.EOPNOTSUPP, func() error { return unix.Setxattr("f", "security.capability", make([]byte, 20), 0) }},
	{"a label", unix.EOPNOTSUPP, func() error { return unix.Setxattr("f", "security.selinux", []byte("x"), 0) }},
	{"a trusted one", unix.EOPNOTSUPP, func() error { return unix.Setxattr("f", "trusted.overlay.opaque", []byte("y"), 0) }},
	{"what overlayfs obeys", unix.EOPNOTSUPP, func() error { return unix.Setxattr("d", "user.overlay.opaque", []byte("y"), 0) }},
	{"the name in capitals", unix.EOPNOTSUPP, func() error { return unix.Setxattr("f", "USER.a", nil, 0) }},
	{"a new call for it", unix.ENOSYS, func() error {
		_, _, e := unix.Syscall6(463, 0, 0, 0, 0, 0, 0) // setxattrat
		return e
	}},
	{"of a protected file", unix.EACCES, func() error { return unix.Setxattr(".envrc", "user.a", nil, 0) }},
	{"of a protected file, by its descriptor", unix.EACCES, func() error { return byDescriptor(".envrc", unix.O_RDONLY) }},
	{"of a hook, through a link", unix.EACCES, func() error { return unix.Setxattr("hook", "user.a", nil, 0) }},
	{"remove one of a protected file", unix.EACCES, func() error { return unix.Removexattr(".envrc", "user.b") }},
	{"of the directory above, by a link and a slash", nil, func() error { return unix.Lsetxattr("ld/", "user.a", nil, 0) }},
	{"of protected files, by a link and a slash", unix.EACCES, func() error { return unix.Lsetxattr("lhooks/", "user.a", nil, 0) }},
	{"a name that changes while it is read", nil, flipAttribute},
}

func holds(file, name, want string) error {
	b := make([]byte, 4096)
	n, err := unix.Getxattr(file, name, b)
	if err != nil || string(b[:n]) != want {
		return fmt.Errorf("%s of %s is %q: %w", name, file, b[:max(n, 0)], err)
	}
	return nil
}

func byDescriptor(file string, flags int) error {
	fd, err := unix.Open(file, flags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fsetxattr(fd, "user.fd", []byte("1"), 0); err != nil {
		return err
	}
	if err := holds(file, "user.fd", "1"); err != nil {
		return err
	}
	return unix.Fremovexattr(fd, "user.fd")
}

func rawSet(file, name string, value, size uintptr) error {
	f, _ := syscall.BytePtrFromString(file)
	n, _ := syscall.BytePtrFromString(name)
	_, _, e := unix.Syscall6(unix.SYS_SETXATTR, uintptr(unsafe.Pointer(f)), uintptr(unsafe.Pointer(n)), value, size, 0, 0)
	return e
}

// flipAttribute sets an attribute whose name another thread turns into that of an ACL and back.
func flipAttribute() error {
	harmless, acl := append([]byte("user.a"), make([]byte, 18)...), []byte("system.posix_acl_access\x00")
	name, value, file := make([]byte, len(acl)), anACL(), []byte("f\x00")
	var end atomic.Bool
	done := make(chan bool)
	go func() {
		for !end.Load() {
			copy(name, acl)
			copy(name, harmless)
		}
		close(done)
	}()
	for range tries / 8 {
		unix.Syscall6(unix.SYS_SETXATTR, uintptr(unsafe.Pointer(&file[0])), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&value[0])), uintptr(len(value)), 0, 0)
	}
	end.Store(true)
	<-done
	var st unix.Stat_t
	if err := unix.Stat("f", &st); err != nil || st.Mode&0o777 != 0o644 {
		return fmt.Errorf("the mode is %o: %w", st.Mode, err)
	}
	return nil
}

func attributes() error {
	for _, c := range attributeCalls {
		if err := c.do(); !errors.Is(err, c.want) || err != nil && c.want == nil {
			fmt.Printf("%s: %v, want %v\n", c.name, err, c.want)
		}
	}
	return nil
}

// TestKernelExtendedAttributes: a program sets, reads and removes attributes of users, and no other.
func TestKernelExtendedAttributes(t *testing.T) {
	kerneltest.Need(t, userAttributes)
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			dir, rules := workspace(t, uid)
			script(t, dir, uid, `echo >f; chmod 644 f; mkdir d; ln -s f l; ln -s d ld; echo >unreadable; chmod 200 unreadable; echo x >.envrc; git init -q .
				mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; ln -s .git/hooks/pre-commit hook; ln -s .git/hooks lhooks`)
			if err := unix.Setxattr(filepath.Join(dir, ".envrc"), "user.b", nil, 0); err != nil && uid == self {
				t.Fatal(err)
			}
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"/bin/sh", "-c", `"$SELF" attributes`}, Env: []string{roleEnv + "=act"}})
			if out != "" || code != 0 {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}
