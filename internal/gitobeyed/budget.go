package gitobeyed

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/regularfile"
)

const (
	steps    = 1 << 19 // of a search: about a system call each, some seconds in all
	mostHops = 40      // links on the way of a path, as in the kernel (path_resolution(7))
)

// Found is what In finds.
type Found struct {
	Paths   []string
	Hooks   []string // see In
	By      string   // the configuration, or the directory, to which most of the search went
	Problem string   // what is wrong with By, so that Paths is not all that git obeys; "": it is all
}

// spend takes steps from those that the search has left, and reports whether there are more.
func (f *finder) spend(n int) bool {
	f.left -= n
	f.cost[f.on] += n
	return f.left > 0
}

// fail ends the search.
func (f *finder) fail(by, problem string) {
	if f.problem == "" {
		f.by, f.problem = by, problem
	}
	f.left = 0
}

// result is what was found.
func (f *finder) result() Found {
	slices.Sort(f.found)
	r := Found{Paths: slices.Compact(f.found), Hooks: slices.Sorted(maps.Keys(f.hooks)), By: f.by, Problem: f.problem}
	if f.problem != "" {
		return r
	}
	for name, n := range f.cost {
		if most := f.cost[r.By]; n > most || n == most && name < r.By {
			r.By = name
		}
	}
	if f.left <= 0 {
		r.Problem = "leads, by all that it names and includes, to more files than are looked at"
	}
	return r
}

// walk returns where p leads, as far as it is there, and calls link with each link that it meets; ok: there are no more than the kernel follows.
// Nothing is asked of the kernel by a name with links, which a tool can make as long as it likes.
func (f *finder) walk(p string, link func(at string)) (at string, ok bool) {
	at, rest := "/", components(p)
	for hops := 0; len(rest) > 0; {
		if !f.spend(1 + len(at)/128) {
			return "", false
		}
		name := rest[0]
		if rest = rest[1:]; name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if link(next); hops == mostHops {
			return "", false
		}
		if hops++; filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(components(target), rest...)
		f.spend(len(rest) / 16)
	}
	return at, true
}

func noLink(string) {}

// components are those that lead somewhere.
func components(p string) []string {
	return slices.DeleteFunc(strings.Split(p, "/"), func(name string) bool { return name == "" || name == "." })
}

// place returns a file's name in its directory, without links on the way to that; ok: it can be a file.
func (f *finder) place(file string) (place string, ok bool) {
	i := strings.LastIndexByte(file, '/')
	dir, name := file[:max(i, 0)], file[i+1:]
	if name == "" || name == "." || name == ".." {
		return "", false
	}
	real, known := f.dirs[dir]
	if !known {
		if real, ok = f.walk(dir, noLink); !ok {
			return "", false
		}
		f.dirs[dir] = real
	}
	return filepath.Join(real, name), true
}

// read returns what is in a file, if git would read it. There are no links on the way to its directory.
func (f *finder) read(file string) (text string, ok bool) {
	at := file
	if _, err := os.Readlink(file); err == nil {
		if at, ok = f.walk(file, noLink); !ok {
			return "", false
		}
	}
	text, err := read(at)
	f.spend(8 + len(text)/64)
	if err == nil {
		return text, true
	}
	for _, none := range []error{fs.ErrNotExist, fs.ErrPermission, regularfile.ErrNotRegular, syscall.ENOTDIR, syscall.ENAMETOOLONG} {
		if errors.Is(err, none) {
			return "", false
		}
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	f.fail(file, "cannot be read: "+err.Error())
	return "", false
}

// entries calls do with what is in a directory.
func (f *finder) entries(dir string, do func(e os.DirEntry)) {
	d, err := regularfile.OpenDir(dir)
	if err != nil {
		return
	}
	defer d.Close()
	for {
		some, _ := d.ReadDir(4096)
		if len(some) == 0 || !f.spend(1+len(some)/16) {
			return
		}
		for _, e := range some {
			do(e)
		}
	}
}
