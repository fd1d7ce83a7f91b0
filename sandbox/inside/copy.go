package inside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// What a copy has at most.
const (
	maxCopied  = 4 << 30 // bytes
	maxCopies  = 1 << 20 // entries
	maxDepth   = 200     // directories in each other, of which each has two descriptors
	maxSkipped = 100     // names in Skipped
	portion    = 256     // names of a directory that are read at once, outside; inside as many as there is room for of 32 bytes
)

// Copied says what CopyIn or CopyOut has copied, also when it fails.
type Copied struct {
	Entries int   // files, directories and links
	Bytes   int64 // of files
	// Skipped are the names, below the directory, of what is neither a regular file, a directory nor a symbolic link: the first hundred.
	Skipped []string
}

// CopyIn copies the content of a directory outside into one of the session's, which it makes: directories, regular files and symbolic links, with their
// permission bits. A link is copied as one and never followed, in either tree outside. What there is already is replaced, and directories
// are kept. More than 4 GiB, 1,048,576 entries or 200 levels are an error that wraps [syscall.EFBIG]. The end of ctx stops it. Directories inside can be
// written by their owner, and have no more permissions than the session's umask lets them have.
func (f *Files) CopyIn(ctx context.Context, from, to string) (Copied, error) {
	c := &copying{ctx: ctx, files: f.here().WithContext(ctx)}
	root, err := os.OpenRoot(from)
	if err != nil {
		return c.done, err
	}
	defer root.Close()
	if err := c.files.MkdirAll(to, 0o777); err != nil {
		return c.done, err
	}
	return c.done, c.in(root, to, "", 0)
}

// CopyOut copies the content of a directory of the session's into one outside, which has to exist, as CopyIn does. Whatever the tools of the session plant in
// either tree, nothing outside of that directory is written, and no link in it is followed. A link that was copied may lead anywhere:
// read what was copied by [os.OpenRoot]. What the policy protects in a workspace, such as .git/hooks and .envrc, is copied like the rest: the tools
// have written it, so do not run git or a shell in the copy outside of a sandbox.
func (f *Files) CopyOut(ctx context.Context, from, to string) (Copied, error) {
	c := &copying{ctx: ctx, files: f.here().WithContext(ctx)}
	root, err := os.OpenRoot(to)
	if err != nil {
		return c.done, err
	}
	defer root.Close()
	return c.done, c.out(from, root, "", 0)
}

// A copying is one call.
type copying struct {
	ctx   context.Context
	files *Files
	done  Copied
}

// next counts an entry.
func (c *copying) next(name string, depth int) error {
	if err := c.ctx.Err(); err != nil {
		return pathError("copy", name, err)
	}
	if c.done.Entries++; c.done.Entries > maxCopies || depth > maxDepth {
		return pathError("copy", name, fmt.Errorf("more than %d entries or %d levels: %w", maxCopies, maxDepth, syscall.EFBIG))
	}
	return nil
}

func (c *copying) skip(name string) {
	c.done.Entries--
	if len(c.done.Skipped) < maxSkipped {
		c.done.Skipped = append(c.done.Skipped, name)
	}
}

// in copies one directory, which may have more names than can be held: it reads some, and copies them. name is its name below the first.
func (c *copying) in(from *os.Root, to, name string, depth int) error {
	d, err := from.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		list, err := d.Readdirnames(portion)
		for _, n := range list {
			if err := c.entryIn(from, to+"/"+n, name+n, n, depth); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// entryIn copies one entry.
func (c *copying) entryIn(from *os.Root, into, below, name string, depth int) error {
	if err := c.next(below, depth); err != nil {
		return err
	}
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return c.dirIn(from, into, below, info, depth)
	case info.Mode().IsRegular():
		return c.fileIn(from, into, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return replaced(func() error { return c.files.Symlink(target, into) }, func() error { return c.files.Remove(into) })
	}
	c.skip(below)
	return nil
}

func (c *copying) dirIn(from *os.Root, into, below string, info fs.FileInfo, depth int) error {
	sub, err := subRoot(from, info)
	if err != nil {
		return err
	}
	defer sub.Close()
	err = c.files.Mkdir(into, info.Mode().Perm()|0o700)
	if errors.Is(err, fs.ErrExist) {
		if is, look := c.files.Lstat(into); look == nil && is.IsDir() {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return c.in(sub, into, below+"/", depth+1)
}

func (c *copying) fileIn(from *os.Root, into string, info fs.FileInfo) error {
	r, err := from.OpenFile(info.Name(), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO may have taken its place
	if err != nil {
		return err
	}
	defer r.Close()
	if err := same(r, info); err != nil {
		return err
	}
	var w *os.File
	err = replaced(func() (err error) {
		w, err = c.files.OpenFile(into, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
		return err
	}, func() error { return c.files.Remove(into) })
	if err != nil {
		return err
	}
	return c.content(w, r, info)
}

// out copies one directory, as in does.
func (c *copying) out(from string, to *os.Root, name string, depth int) error {
	d, err := c.files.openDir(from)
	if err != nil {
		return err
	}
	defer d.Close()
	buf := make([]byte, portion*32)
	for {
		list, err := nextEntries(d, buf)
		if err != nil || len(list) == 0 {
			return pathError("readdirent", from, err)
		}
		for _, e := range list {
			if err := c.entryOut(from+"/"+e.name, to, name+e.name, e.name, depth); err != nil {
				return err
			}
		}
	}
}

// entryOut copies one entry.
func (c *copying) entryOut(at string, to *os.Root, below, name string, depth int) error {
	if err := c.next(below, depth); err != nil {
		return err
	}
	if strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
		return pathError("copy", below, syscall.EINVAL)
	}
	info, err := c.files.Lstat(at)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return c.dirOut(at, to, below, info, depth)
	case info.Mode().IsRegular():
		return c.fileOut(at, to, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := c.files.Readlink(at)
		if err != nil {
			return err
		}
		return replaced(func() error { return to.Symlink(target, name) }, func() error { return to.Remove(name) })
	}
	c.skip(below)
	return nil
}

func (c *copying) dirOut(at string, to *os.Root, below string, info fs.FileInfo, depth int) error {
	made := true
	if err := to.Mkdir(info.Name(), 0o700); errors.Is(err, fs.ErrExist) {
		made = false
	} else if err != nil {
		return err
	}
	is, err := to.Lstat(info.Name())
	if err == nil && !is.IsDir() {
		err = pathError("mkdir", below, syscall.EEXIST)
	}
	if err != nil {
		return err
	}
	sub, err := subRoot(to, is)
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := c.out(at, sub, below+"/", depth+1); err != nil || !made {
		return err
	}
	d, err := sub.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Chmod(info.Mode().Perm())
}

func (c *copying) fileOut(at string, to *os.Root, info fs.FileInfo) error {
	r, err := c.files.OpenFile(at, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	var w *os.File
	err = replaced(func() (err error) {
		w, err = to.OpenFile(info.Name(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	}, func() error { return to.Remove(info.Name()) })
	if err != nil {
		return err
	}
	return c.content(w, r, info)
}

// content copies a file's bytes and permissions, and closes the copy.
func (c *copying) content(w, r *os.File, info fs.FileInfo) error {
	room := maxCopied - c.done.Bytes
	n, err := io.Copy(struct{ io.Writer }{w}, &io.LimitedReader{R: asked{c.ctx, r}, N: room + 1})
	c.done.Bytes += min(n, room)
	if err == nil && n > room {
		err = pathError("copy", r.Name(), fmt.Errorf("more than %d bytes: %w", int64(maxCopied), syscall.EFBIG))
	}
	if err == nil {
		err = w.Chmod(info.Mode().Perm())
	}
	return errors.Join(err, w.Close())
}

// asked reads until a context is done.
type asked struct {
	ctx context.Context
	r   io.Reader
}

func (a asked) Read(b []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	return a.r.Read(b)
}

// replaced makes what must not exist, and where it does, makes it once more after its removal, which a directory refuses.
func replaced(do, remove func() error) error {
	err := do()
	if errors.Is(err, fs.ErrExist) {
		if err = remove(); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = do()
		}
	}
	return err
}

// subRoot opens a directory that was looked at: another that a link of the same name leads to is none.
func subRoot(root *os.Root, info fs.FileInfo) (*os.Root, error) {
	sub, err := root.OpenRoot(info.Name())
	if err != nil {
		return nil, err
	}
	is, err := sub.Stat(".")
	if err == nil && !os.SameFile(is, info) {
		err = pathError("open", info.Name(), errSwapped)
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// errSwapped is the error of a file in whose place there was another when it was opened.
var errSwapped = errors.New("was replaced while it was copied")

func same(f *os.File, info fs.FileInfo) error {
	is, err := f.Stat()
	if err == nil && !os.SameFile(is, info) {
		err = pathError("open", info.Name(), errSwapped)
	}
	return err
}
