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
	portion    = 256     // names of a directory that are read at once
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
	f = f.here().WithContext(ctx)
	return copied(ctx, from, func(root outside) (_, _ side, err error) { return root, f.below(to), f.MkdirAll(to, 0o777) })
}

// CopyOut copies the content of a directory of the session's into one outside, which has to exist, as CopyIn does. Whatever the tools of the session plant in
// either tree, nothing outside of that directory is written, and no link in it is followed. A link that was copied may lead anywhere:
// read what was copied by [os.OpenRoot]. What the policy protects in a workspace, such as .git/hooks and .envrc, is copied like the rest: the tools
// have written it, so do not run git or a shell in the copy outside of a sandbox.
func (f *Files) CopyOut(ctx context.Context, from, to string) (Copied, error) {
	f = f.here().WithContext(ctx)
	return copied(ctx, to, func(root outside) (_, _ side, err error) { _, err = f.Stat(from); return f.below(from), root, err })
}

// copied copies from one side to the other, of which one is the directory outside.
func copied(ctx context.Context, dir string, sides func(outside) (from, to side, err error)) (Copied, error) {
	c := &copying{ctx: ctx}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return c.done, err
	}
	defer root.Close()
	from, to, err := sides(outside{root})
	if err == nil {
		err = c.dir(from, to, "", 0)
	}
	if err != nil && c.at != "" {
		err = pathError("copy", c.at, err)
	}
	return c.done, err
}

// A side is a directory of one of the trees: outside it is opened and held, inside it is a name, which may lead anywhere inside.
type side interface {
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	Mkdir(name string, perm fs.FileMode) error
	Symlink(target, name string) error
	Remove(name string) error
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	list() (*os.File, error)                 // to read its names
	file(info fs.FileInfo) (*os.File, error) // to read an entry
	sub(info fs.FileInfo) (side, error)
	Close() error
}

type outside struct{ *os.Root }

func (o outside) list() (*os.File, error) { return o.Open(".") }

func (o outside) file(info fs.FileInfo) (*os.File, error) {
	r, err := o.OpenFile(info.Name(), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO may have taken its place
	if err != nil {
		return nil, err
	}
	if err := same(r, info); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// sub opens a directory that was looked at: another that a link of the same name leads to is an error.
func (o outside) sub(info fs.FileInfo) (side, error) {
	sub, err := o.OpenRoot(info.Name())
	if err != nil {
		return nil, err
	}
	d, err := sub.Open(".")
	if err == nil {
		err = same(d, info)
		d.Close()
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return outside{sub}, nil
}

type within struct{ *Files }

// below are the same files, with relative names from a directory on.
func (f *Files) below(name string) within {
	dir := below(f.dir(), name)
	return within{&Files{f.client, f.ctx, func() string { return dir }, f.denied}}
}

func (w within) list() (*os.File, error) { return w.openDir(".") }
func (w within) file(info fs.FileInfo) (*os.File, error) {
	return w.OpenFile(info.Name(), os.O_RDONLY, 0)
}
func (w within) sub(info fs.FileInfo) (side, error) { return w.below(info.Name()), nil }
func (w within) Close() error                       { return nil }

// A copying is one call.
type copying struct {
	ctx  context.Context
	done Copied
	at   string // the entry's name below the first directory
}

// dir copies the content of a directory, which may have more names than can be held: it reads some, and copies them.
func (c *copying) dir(from, to side, below string, depth int) error {
	d, err := from.list()
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		list, err := d.Readdirnames(portion)
		for _, name := range list {
			if err := c.entry(from, to, name, below, depth); err != nil {
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

func (c *copying) entry(from, to side, name, below string, depth int) error {
	c.at = below + name
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.done.Entries++; c.done.Entries > maxCopies || depth > maxDepth {
		return fmt.Errorf("more than %d entries or %d levels: %w", maxCopies, maxDepth, syscall.EFBIG)
	}
	if strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
		return syscall.EINVAL
	}
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	_, out := to.(outside)
	remove := func() error { return to.Remove(name) }
	switch {
	case info.IsDir():
		return c.subdirectory(from, to, out, info, depth)
	case info.Mode().IsRegular():
		r, err := from.file(info)
		if err != nil {
			return err
		}
		defer r.Close()
		var w *os.File
		if err := replaced(func() (err error) {
			w, err = to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			return err
		}, remove); err != nil {
			return err
		}
		return c.content(w, r, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return replaced(func() error { return to.Symlink(target, name) }, remove)
	}
	c.done.Entries--
	if len(c.done.Skipped) < maxSkipped {
		c.done.Skipped = append(c.done.Skipped, c.at)
	}
	return nil
}

func (c *copying) subdirectory(from, to side, out bool, info fs.FileInfo, depth int) error {
	source, err := from.sub(info)
	if err != nil {
		return err
	}
	defer source.Close()
	perm := info.Mode().Perm() | 0o700
	if out {
		perm = 0o700 // while it is written
	}
	err = to.Mkdir(info.Name(), perm)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	is, look := to.Lstat(info.Name())
	if look != nil {
		return look
	} else if !is.IsDir() {
		return syscall.EEXIST
	}
	into, look := to.sub(is)
	if look != nil {
		return look
	}
	defer into.Close()
	if copy := c.dir(source, into, c.at+"/", depth+1); copy != nil || err != nil || !out {
		return copy
	}
	d, err := into.list()
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Chmod(info.Mode().Perm())
}

// content copies a file's bytes and permissions, and closes the copy.
func (c *copying) content(w, r *os.File, info fs.FileInfo) error {
	room := maxCopied - c.done.Bytes
	n, err := io.Copy(struct{ io.Writer }{w}, &io.LimitedReader{R: asked{c.ctx, r}, N: room + 1})
	c.done.Bytes += min(n, room)
	if err == nil && n > room {
		err = fmt.Errorf("more than %d bytes: %w", int64(maxCopied), syscall.EFBIG)
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

// errSwapped is the error of a file in whose place there was another when it was opened.
var errSwapped = errors.New("was replaced while it was copied")

func same(f *os.File, info fs.FileInfo) error {
	is, err := f.Stat()
	if err == nil && !os.SameFile(is, info) {
		err = pathError("open", info.Name(), errSwapped)
	}
	return err
}
