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
func (f *Files) FS() fs.FS { return tree{f, "/", true} }

// A tree has names below a directory; "" is the one that the server works in.
type tree struct {
	files *Files
	dir   string
	valid bool // names have to be (fs.ValidPath), as all are that others give
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

// at does what a method of Files does with a name; an error has the name that the caller has.
func at[T any](t tree, op, name string, do func(name string) (T, error)) (T, error) {
	if t.valid && !fs.ValidPath(name) {
		var none T
		return none, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	v, err := do(t.name(name))
	if e, ok := err.(*fs.PathError); ok {
		err = &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	}
	return v, err
}

// Open opens a file or directory.
func (t tree) Open(name string) (fs.File, error) {
	return at(t, "open", name, func(path string) (fs.File, error) {
		f, is, err := t.files.open(path, os.O_RDONLY, 0)
		switch {
		case err != nil:
			return nil, err
		case is:
			return &dir{files: t.files, file: f, path: path, name: name}, nil
		}
		return regular{f}, nil
	})
}

// ReadFile reads a file whole.
func (t tree) ReadFile(name string) ([]byte, error) { return at(t, "open", name, t.files.ReadFile) }

// ReadDir reads a directory.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	return at(t, "open", name, t.files.ReadDir)
}

// Stat looks at what a name leads to.
func (t tree) Stat(name string) (fs.FileInfo, error) { return at(t, "stat", name, t.files.Stat) }

// Lstat looks at a name.
func (t tree) Lstat(name string) (fs.FileInfo, error) { return at(t, "lstat", name, t.files.Lstat) }

// ReadLink reads a symbolic link.
func (t tree) ReadLink(name string) (string, error) {
	return at(t, "readlink", name, t.files.Readlink)
}

// Glob returns the names that match a pattern.
func (t tree) Glob(pattern string) ([]string, error) { return t.glob(pattern, maxEntries, maxMatched) }

// Sub returns the tree below a directory.
func (t tree) Sub(name string) (fs.FS, error) {
	return at(t, "sub", name, func(path string) (fs.FS, error) { return tree{t.files, path, true}, nil })
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

// A dirent is what the kernel says of a directory's entry; unknown: not its type.
type dirent struct {
	name    string
	kind    fs.FileMode
	unknown bool
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
