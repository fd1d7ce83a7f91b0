package inside

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Files are the files of a session. Its methods are those of package os, with the same errors, and those of [ServerError] and
// [ErrNotRegular] besides, in an [*fs.PathError] or [*os.LinkError]. What the sandbox has refused wraps a *policy.Violation, too. They are safe for concurrent use.
type Files struct {
	client *client
	ctx    context.Context
	dir    func() string // where relative names begin; "": where the server works
	denied Denied
}

// Denied returns what the sandbox has said of the latest refusal at one of the names, absolute where that is known; nil: it has
// refused nothing there.
type Denied func(read bool, names ...string) error

// A refusedError is the errno of a refusal with the sandbox's reason.
type refusedError struct {
	errno  syscall.Errno
	denial error
}

func (e *refusedError) Error() string { return e.errno.Error() + ": " + e.denial.Error() }

// Unwrap returns both, so that errors.Is finds fs.ErrPermission.
func (e *refusedError) Unwrap() []error { return []error{e.errno, e.denial} }

// refusal is the error of an answer, with the sandbox's reason if that has refused it.
func (f *Files) refusal(r request, a answer) error {
	errno := syscall.Errno(a.errno)
	if errno == syscall.EACCES || errno == syscall.EPERM {
		names := []string{r.name, r.other}
		if a.op != "" {
			names[0] = a.path
		}
		if err := f.denied(r.op == opOpen && !r.writes(), names...); err != nil {
			return &refusedError{errno, err}
		}
	}
	return errno
}

// ErrNotRegular is wrapped by the error of a file that is neither a regular one nor a directory.
var ErrNotRegular = errors.New("is not a regular file")

// A ServerError says that a request has come to nothing because its server has ended, or has neither started nor answered in half a minute. Whether it was
// carried out is not known. The next request starts another server.
type ServerError struct {
	Problem string
	Err     error
}

func (e *ServerError) Error() string {
	if e.Err == nil {
		return "the session's file server " + e.Problem
	}
	return "the session's file server " + e.Problem + ": " + e.Err.Error()
}

// Unwrap returns Err: [os.ErrDeadlineExceeded] of a server that has not answered.
func (e *ServerError) Unwrap() error { return e.Err }

// New is for package sandbox: use Session.Files.
func New(start Start, over func() error, dir func() string, denied Denied) *Files {
	return &Files{newClient(start, over), context.Background(), dir, denied}
}

// WithContext returns the same files for requests that end with ctx, with an error that wraps its cause. Whether such a request was carried out is not
// known. A request whose context has no deadline ends after half a minute.
func (f *Files) WithContext(ctx context.Context) *Files {
	return &Files{f.client, ctx, f.dir, f.denied}
}

// here returns the same files for several requests, among which the directory does not change.
func (f *Files) here() *Files {
	dir := f.dir()
	return &Files{f.client, f.ctx, func() string { return dir }, f.denied}
}

// maxWhole is how much is read whole, and maxEntries how long a directory may be.
const maxWhole, maxEntries = 256 << 20, 1 << 20

// request asks for what the answer to has no descriptor.
func (f *Files) request(name string, r request) error {
	if err := f.place(&r, name); err != nil {
		return &fs.PathError{Op: ops[r.op], Path: name, Err: err}
	}
	a, _, err := f.client.ask(f.ctx, r)
	if err != nil || a.errno == 0 {
		return pathError(ops[r.op], name, err)
	}
	op, path := ops[r.op], name
	if a.op != "" {
		op, path = a.op, strings.TrimPrefix(a.path, strings.TrimSuffix(r.name, name)) // relative, if that is
	}
	return &fs.PathError{Op: op, Path: path, Err: f.refusal(r, a)}
}

// descriptor asks for a descriptor. The error is bare.
func (f *Files) descriptor(name string, r request) (int, error) {
	if err := f.place(&r, name); err != nil {
		return -1, err
	}
	a, fd, err := f.client.ask(f.ctx, r)
	if err == nil && a.errno != 0 {
		err = f.refusal(r, a)
	}
	return fd, err
}

// ops are the names of operations in errors, as package os has them.
var ops = [opLast]string{opOpen: "open", opStat: "stat", opLstat: "lstat", opMkdir: "mkdir", opMkdirAll: "mkdir", opRemove: "remove", opRemoveAll: "unlinkat", opRename: "rename", opSymlink: "symlink"}

// place puts name in r, if the kernel could take it and what else r has.
func (f *Files) place(r *request, name string) error {
	dir := f.dir()
	if r.name = below(dir, name); r.op == opRename {
		r.other = below(dir, r.other)
	}
	for _, s := range []string{r.name, r.other} {
		if strings.ContainsRune(s, 0) {
			return syscall.EINVAL
		}
		if len(s) >= maxName {
			return syscall.ENAMETOOLONG
		}
	}
	return nil
}

// below is a name as it is without a working directory. Nothing of it is resolved, which is the kernel's to do.
func below(dir, name string) string {
	if dir == "" || name == "" || name[0] == '/' {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// OpenFile is [os.OpenFile] for regular files. The *os.File's Name is the name given.
func (f *Files) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	file, dir, err := f.open(name, flag, perm)
	if err == nil && dir {
		file.Close()
		err = pathError("open", name, syscall.EISDIR) // its entries are for ReadDir: the methods of an os.File look for them outside
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

// open opens a file or a directory.
func (f *Files) open(name string, flag int, perm fs.FileMode) (file *os.File, dir bool, err error) {
	fd, err := f.descriptor(name, request{op: opOpen, flags: uint32(flag), perm: bits(perm)})
	if err == nil {
		file, dir, err = opened(fd, flag, name)
	}
	return file, dir, pathError("open", name, err)
}

// bits are a file's permissions as the kernel has them.
func bits(perm fs.FileMode) uint32 {
	b := uint32(perm.Perm())
	for as, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: syscall.S_ISUID, fs.ModeSetgid: syscall.S_ISGID, fs.ModeSticky: syscall.S_ISVTX} {
		if perm&as != 0 {
			b |= bit
		}
	}
	return b
}

// ReadFile is [os.ReadFile], for at most 256 MiB.
func (f *Files) ReadFile(name string) ([]byte, error) {
	file, dir, err := f.open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if dir {
		return nil, pathError("read", name, syscall.EISDIR)
	}
	return readWhole(file, name)
}

func readWhole(file *os.File, name string) ([]byte, error) {
	size := 512
	if info, err := file.Stat(); err == nil && info.Size() > maxWhole {
		return nil, pathError("read", name, syscall.EFBIG)
	} else if err == nil && info.Size() < 1<<20 {
		size = int(info.Size()) + 512 // one read finds the end
	}
	data := make([]byte, 0, size)
	for {
		n, err := file.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return data, nil
		case err != nil:
			return data, err
		case len(data) > maxWhole:
			return nil, pathError("read", name, syscall.EFBIG)
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

// WriteFile is [os.WriteFile].
func (f *Files) WriteFile(name string, data []byte, perm fs.FileMode) error {
	file, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// Replace gives a file that exists other content in one step: whoever opens it has either. It keeps the permissions, and follows
// symbolic links. It makes the new file beside the old one and renames it.
func (f *Files) Replace(name string, data []byte) error {
	f = f.here()
	for range 40 {
		info, err := f.Lstat(name)
		switch {
		case err != nil:
			return err
		case info.Mode().IsRegular():
			return f.replace(name, data, info.Mode())
		case info.Mode()&fs.ModeSymlink == 0:
			return pathError("replace", name, ErrNotRegular)
		}
		to, err := f.Readlink(name)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(to, "/") {
			to = name[:strings.LastIndexByte(name, '/')+1] + to
		}
		name = to
	}
	return pathError("replace", name, syscall.ELOOP)
}

func (f *Files) replace(name string, data []byte, mode fs.FileMode) error {
	beside := name[:strings.LastIndexByte(name, '/')+1] + ".new" + strconv.FormatInt(time.Now().UnixNano(), 36)
	file, err := f.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(mode.Perm()), file.Close())
	if err == nil {
		err = f.Rename(beside, name)
	}
	if err != nil {
		f.Remove(beside)
	}
	return err
}

// ReadDir is [os.ReadDir], for directories of at most 1,048,576 entries.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	f = f.here() // for Info of the entries
	dir, err := f.openDir(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := f.entries(dir, name)
	return list, pathError("readdirent", name, err)
}

// openDir opens a directory.
func (f *Files) openDir(name string) (*os.File, error) {
	dir, is, err := f.open(name, os.O_RDONLY, 0)
	if err == nil && !is {
		dir.Close()
		dir, err = nil, pathError("open", name, syscall.ENOTDIR)
	}
	return dir, err
}

// Stat is [os.Stat].
func (f *Files) Stat(name string) (fs.FileInfo, error) { return f.stat(name, opStat) }

// Lstat is [os.Lstat].
func (f *Files) Lstat(name string) (fs.FileInfo, error) { return f.stat(name, opLstat) }

func (f *Files) stat(name string, op byte) (info fs.FileInfo, err error) {
	fd, err := f.descriptor(name, request{op: op})
	if err == nil {
		info, err = looked(fd, name)
	}
	return info, pathError(ops[op], name, err)
}

// Mkdir is [os.Mkdir].
func (f *Files) Mkdir(name string, perm fs.FileMode) error {
	return f.request(name, request{op: opMkdir, perm: bits(perm)})
}

// MkdirAll is [os.MkdirAll].
func (f *Files) MkdirAll(name string, perm fs.FileMode) error {
	return f.request(name, request{op: opMkdirAll, perm: bits(perm)})
}

// Remove is [os.Remove].
func (f *Files) Remove(name string) error { return f.request(name, request{op: opRemove}) }

// RemoveAll is [os.RemoveAll].
func (f *Files) RemoveAll(name string) error { return f.request(name, request{op: opRemoveAll}) }

// Rename is [os.Rename].
func (f *Files) Rename(from, to string) error {
	return linkError(from, to, f.request(from, request{op: opRename, other: to}))
}

// Symlink is [os.Symlink].
func (f *Files) Symlink(target, name string) error {
	return linkError(target, name, f.request(name, request{op: opSymlink, other: target}))
}

// linkError makes an os.LinkError of a request's.
func linkError(from, to string, err error) error {
	var e *fs.PathError
	if !errors.As(err, &e) {
		return err
	}
	return &os.LinkError{Op: e.Op, Old: from, New: to, Err: e.Err}
}

// Readlink is [os.Readlink].
func (f *Files) Readlink(name string) (to string, err error) {
	fd, err := f.descriptor(name, request{op: opLstat})
	if err == nil {
		to, err = target(fd)
	}
	return to, pathError("readlink", name, err)
}
