package inside

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// FS returns the session's files from its root directory, as an [fs.FS] that has ReadFile, ReadDir, Stat, Lstat, ReadLink, Glob and Sub. Like [os.DirFS] it
// follows links wherever they lead, inside.
func (f *Files) FS() fs.FS { return root{tree{f, "/"}} }

// A root is what a tree is to others: names are checked (fs.ValidPath).
type root struct{ t tree }

// A tree has names below a directory; "" is the one that the server works in.
type tree struct {
	files *Files
	dir   string
}

func (t tree) name(name string) string {
	switch {
	case t.dir == "":
		return name
	case name == ".":
		return t.dir
	}
	return strings.TrimSuffix(t.dir, "/") + "/" + name
}

// Open opens a file or directory.
func (t tree) Open(name string) (fs.File, error) {
	f, is, err := t.files.open(t.name(name), os.O_RDONLY, 0)
	switch {
	case err != nil:
		return nil, named(err, name)
	case is:
		return &dir{files: t.files, file: f, path: t.name(name), name: name}, nil
	}
	return regular{f}, nil
}

// ReadFile reads a file whole.
func (t tree) ReadFile(name string) ([]byte, error) {
	b, err := t.files.ReadFile(t.name(name))
	return b, named(err, name)
}

// ReadDir reads a directory.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := t.files.ReadDir(t.name(name))
	return list, named(err, name)
}

// Stat looks at what a name leads to.
func (t tree) Stat(name string) (fs.FileInfo, error) {
	i, err := t.files.Stat(t.name(name))
	return i, named(err, name)
}

// Lstat looks at a name.
func (t tree) Lstat(name string) (fs.FileInfo, error) {
	i, err := t.files.Lstat(t.name(name))
	return i, named(err, name)
}

// ReadLink reads a symbolic link.
func (t tree) ReadLink(name string) (string, error) {
	to, err := t.files.Readlink(t.name(name))
	return to, named(err, name)
}

func (r root) Open(name string) (fs.File, error) {
	if err := valid("open", name); err != nil {
		return nil, err
	}
	return r.t.Open(name)
}

func (r root) ReadFile(name string) ([]byte, error) {
	if err := valid("open", name); err != nil {
		return nil, err
	}
	return r.t.ReadFile(name)
}

func (r root) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := valid("open", name); err != nil {
		return nil, err
	}
	return r.t.ReadDir(name)
}

func (r root) Stat(name string) (fs.FileInfo, error) {
	if err := valid("stat", name); err != nil {
		return nil, err
	}
	return r.t.Stat(name)
}

func (r root) Lstat(name string) (fs.FileInfo, error) {
	if err := valid("lstat", name); err != nil {
		return nil, err
	}
	return r.t.Lstat(name)
}

func (r root) ReadLink(name string) (string, error) {
	if err := valid("readlink", name); err != nil {
		return "", err
	}
	return r.t.ReadLink(name)
}

func (r root) Glob(pattern string) ([]string, error) {
	return r.t.glob(pattern, maxEntries, maxMatched)
}

func (r root) Sub(name string) (fs.FS, error) {
	if err := valid("sub", name); err != nil {
		return nil, err
	}
	return root{tree{r.t.files, r.t.name(name)}}, nil
}

func valid(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

// named gives an error the name that the caller has.
func named(err error, name string) error {
	if e, ok := err.(*fs.PathError); ok {
		return &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	}
	return err
}

// A regular is a file that is open, without the methods of an os.File that go by its name.
type regular struct{ f *os.File }

func (r regular) Stat() (fs.FileInfo, error)                { return r.f.Stat() }
func (r regular) Read(b []byte) (int, error)                { return r.f.Read(b) }
func (r regular) ReadAt(b []byte, off int64) (int, error)   { return r.f.ReadAt(b, off) }
func (r regular) Seek(off int64, whence int) (int64, error) { return r.f.Seek(off, whence) }
func (r regular) Close() error                              { return r.f.Close() }

// A dir is a directory that is open.
type dir struct {
	files      *Files
	file       *os.File
	path, name string
	list       []fs.DirEntry // not returned yet, once read
	read       bool
}

func (d *dir) Stat() (fs.FileInfo, error) { return d.file.Stat() }
func (d *dir) Close() error               { return d.file.Close() }
func (d *dir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: syscall.EISDIR}
}

// ReadDir returns the next n entries, or with n <= 0 all that are left.
func (d *dir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.read {
		list, err := d.files.entries(d.file, d.path)
		if err != nil {
			return nil, &fs.PathError{Op: "readdirent", Path: d.name, Err: err}
		}
		d.list, d.read = list, true
	}
	if n > 0 && len(d.list) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.list) {
		n = len(d.list)
	}
	list := d.list[:n:n]
	d.list = d.list[n:]
	return list, nil
}

// entries reads an open directory, sorted.
func (f *Files) entries(dir *os.File, name string) ([]fs.DirEntry, error) {
	read, err := entries(dir, maxEntries)
	if err != nil {
		return nil, err
	}
	list := make([]fs.DirEntry, 0, len(read))
	for _, e := range read {
		in := &entry{e, f, name}
		if e.unknown {
			info, err := in.Info()
			if err != nil {
				continue // it is gone
			}
			in.kind = info.Mode().Type()
		}
		list = append(list, in)
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// An entry is one of a directory.
type entry struct {
	dirent
	files *Files
	dir   string // shared by all of it: a million long paths are gigabytes
}

func (e *entry) Name() string               { return e.name }
func (e *entry) IsDir() bool                { return e.kind.IsDir() }
func (e *entry) Type() fs.FileMode          { return e.kind }
func (e *entry) Info() (fs.FileInfo, error) { return e.files.Lstat(below(e.dir, e.name)) }
func (e *entry) String() string             { return fs.FormatDirEntry(e) }
