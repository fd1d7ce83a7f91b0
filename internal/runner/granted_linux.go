package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// A file is what a question is about. It is opened, by O_PATH, before the question is asked, so that the answer is about this one.
type file struct {
	fd      int
	request policy.FileRequest
}

func (f *file) close() { unix.Close(f.fd) }

// unasked is why nothing is asked about what Files.Watch records as it is.
const unasked = "it is not there"

// candidate finds the file that an open is about, outside; why: nothing is asked about it.
func (q *questions) candidate(question supervisor.Question) (f *file, why string) {
	d := question.Denial
	at, ok := q.watch.find(d.Paths[0], !d.NoFollow)
	write := d.Deed != supervisor.DeedRead
	around, shown := q.sandbox.Tree.Around(at.real)
	switch {
	case !ok || !at.there:
		return nil, unasked
	case !at.mode.IsRegular():
		return nil, "it is no plain file"
	case write && at.mode&0o111 != 0:
		return nil, "it can be executed"
	case shown && around.Kind == pathrule.Hide:
		return nil, "the policy hides it"
	case shown && (around.Kind == pathrule.Write || around.Kind == pathrule.CopyOnWrite || around.Kind == pathrule.Read && !write):
		return nil, "the policy shows it where it really is, at " + quoted(at.real)
	case shown && around.Kind != pathrule.Read && question.Errno != int(unix.ENOENT) && q.sandbox.Plan.Namespaces.Mount:
		return nil, "the sandbox has its own file there"
	case isOwn(at.real):
		return nil, "it belongs to a sandbox"
	}
	if why := q.sandbox.Policy.Files.NeverAsked(at.real, write); why != "" {
		return nil, why
	}
	r := policy.FileRequest{Path: at.real, Write: write, PID: d.PID, Claimed: errtext.Printable(refusedOf(d).Claimed), Caution: q.sandbox.Secret(at.real, false)}
	if asked := path.Clean(d.Paths[0]); asked != at.real {
		r.Asked = errtext.Printable(asked)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, at.real, &how)
	if err != nil {
		return nil, "it cannot be opened: " + err.Error()
	}
	f = &file{fd, r}
	if err := f.check(); err != nil {
		f.close()
		return nil, err.Error()
	}
	return f, ""
}

// check reports whether the file is one that may be given, and has the path that the question names.
func (f *file) check() error {
	var st unix.Stat_t
	var on unix.Statfs_t
	if err := errors.Join(unix.Fstat(f.fd, &st), unix.Fstatfs(f.fd, &on)); err != nil {
		return err
	}
	named, err := os.Readlink(f.self())
	switch {
	case err != nil:
		return err
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return errors.New("it is no plain file")
	case named != f.request.Path || st.Nlink == 0:
		return errors.New("another file has its path by now")
	case st.Nlink > 1: // one of its names may be protected or hidden
		return fmt.Errorf("it has %d hard links", st.Nlink)
	case !plainFileSystems[int64(on.Type)]:
		return fmt.Errorf("it lies on a file system that is not known to hold plain files (type %#x)", on.Type)
	case f.request.Write && gitAround(path.Dir(named)):
		return errors.New("it lies in a git directory")
	}
	return nil
}

// self is a path by which the file itself is opened.
func (f *file) self() string { return "/proc/self/fd/" + strconv.Itoa(f.fd) }

// plainFileSystems hold files that are opened and read without an effect, by their type in statfs(2). The kernel's own, such as
// sysfs and cgroup2, are not among them.
var plainFileSystems = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true,
	unix.F2FS_SUPER_MAGIC: true, unix.NFS_SUPER_MAGIC: true, unix.RAMFS_MAGIC: true, unix.SQUASHFS_MAGIC: true, unix.ISOFS_SUPER_MAGIC: true,
	unix.MSDOS_SUPER_MAGIC: true, unix.FUSE_SUPER_MAGIC: true, unix.V9FS_MAGIC: true, unix.REISERFS_SUPER_MAGIC: true, unix.ECRYPTFS_SUPER_MAGIC: true,
	unix.EROFS_SUPER_MAGIC_V1: true, unix.EXFAT_SUPER_MAGIC: true, unix.UDF_SUPER_MAGIC: true,
	0x2fc12fc1: true, // ZFS
	0xca451a4e: true, // bcachefs
	0xff534d42: true, // CIFS
	0xfe534d42: true, // SMB2
	0x00c36400: true, // Ceph
}

// gitAround reports whether a directory, or one around it, has the shape of a git directory, whatever it is called.
func gitAround(dir string) bool {
	there := func(name string) bool {
		_, err := os.Lstat(path.Join(dir, name))
		return !errors.Is(err, fs.ErrNotExist)
	}
	for ; ; dir = path.Dir(dir) {
		if there("HEAD") && (there("commondir") || there("objects") && there("refs")) {
			return true
		}
		if dir == "/" {
			return false
		}
	}
}

// open returns the descriptor that the tool gets, after the answer.
func (q *questions) open(f *file, flags int) (int, error) {
	if err := f.check(); err != nil {
		return -1, err
	}
	if !f.request.Write {
		return q.copies.open(f)
	}
	const kept = unix.O_ACCMODE | unix.O_APPEND | unix.O_TRUNC | unix.O_SYNC
	return unix.Open(f.self(), flags&kept|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
}

// Bounds of the copies of one run.
const (
	largestCopy = 64 << 20
	mostCopied  = 256 << 20 // bytes, of all copies that were made
	mostCopies  = 64        // that are kept for the next open
)

// copies are what the tool gets of files to be read: it could open a descriptor of the file itself anew to write, through /proc/self/fd, and
// change the file's mode by it, where no mount of the sandbox's lies around the file.
type copies struct {
	mu    sync.Mutex
	bytes int64
	made  map[version]int // descriptors
}

// A version is a file as it was at one time.
type version struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// open returns a descriptor of a copy, of its own.
func (c *copies) open(f *file) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fd, err := unix.Open(f.self(), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, err
	}
	from := os.NewFile(uintptr(fd), f.request.Path)
	defer from.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, err
	}
	v := version{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}
	if made, ok := c.made[v]; ok {
		return reopen(made)
	}
	if st.Size > largestCopy || c.bytes+st.Size > mostCopied {
		return -1, fmt.Errorf("it is too large to be copied: a file may have %d MiB, all of a run together %d", largestCopy>>20, mostCopied>>20)
	}
	made, n, err := copyOf(from, st.Mode)
	c.bytes += n
	if err != nil {
		return -1, err
	}
	if len(c.made) < mostCopies && unix.Fstat(fd, &st) == nil && v == (version{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}) {
		if c.made == nil {
			c.made = map[version]int{}
		}
		c.made[v] = made
		return reopen(made)
	}
	defer unix.Close(made)
	return reopen(made)
}

// end lets go of the copies.
func (c *copies) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fd := range c.made {
		unix.Close(fd)
	}
	c.made = nil
}

func reopen(fd int) (int, error) {
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// copyOf makes a nameless file in memory with what can be read, and seals it. n is how many bytes were copied, also where it fails.
func copyOf(from io.Reader, mode uint32) (fd int, n int64, err error) {
	const noExec = 8 // MFD_NOEXEC_SEAL, Linux 6.3
	fd, err = unix.MemfdCreate("holdfast copy", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|noExec)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate("holdfast copy", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return -1, 0, err
	}
	to := os.NewFile(uintptr(fd), "copy")
	defer to.Close()
	if n, err = io.Copy(to, io.LimitReader(from, largestCopy+1)); err != nil {
		return -1, n, err
	}
	if n > largestCopy {
		return -1, n, fmt.Errorf("it is larger than %d MiB", largestCopy>>20)
	}
	if err := unix.Fchmod(int(to.Fd()), mode&0o444|0o400); err != nil {
		return -1, n, err
	}
	if _, err := unix.FcntlInt(to.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return -1, n, err
	}
	fd, err = unix.FcntlInt(to.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return fd, n, err
}
