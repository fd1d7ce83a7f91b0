package sandbox

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// layout is a Files policy made concrete on this host: canonical paths, parents
// before children, and the links that lead to them.
type layout struct {
	entries []entry
	links   []link
}

// entry is one rule. What lies below it is of its kind, down to the next entry.
type entry struct {
	path   string
	kind   pathrule.Kind
	dir    bool        // a directory; otherwise a file of any type
	device bool        // a device file
	shown  bool        // a socket that the entry around it shows already
	file   policy.File // of kind fileMake
}

// link is a symbolic link of the host that has to be made again inside.
type link struct{ path, target string }

// ownDevices are in every sandbox's /dev, so that rules for them say nothing new.
var ownDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// maxLinks is how many links one path may lead through: MAXSYMLINKS of
// include/linux/namei.h.
const maxLinks = 40

// resolve makes f concrete. It reads names and links of the host and opens
// nothing; sockets are Network.Unix. The order of the result is that of the tree, so equal policies on
// equal hosts give equal layouts. An error is a *PolicyError.
func resolveFiles(f Files, unfit Unfit, sockets ...string) (layout, error) {
	r := newResolver()
	r.unfit = unfit
	var links map[string]string
	for _, list := range f.Lists(sockets...) {
		if list.Kind == pathrule.Hide { // the last: its paths need no links inside
			if err := r.addMakes(f.Make); err != nil {
				return layout{}, err
			}
			links = maps.Clone(r.links)
		}
		for i, p := range list.Paths {
			if err := r.add(rule{list: list.Field, index: i, asked: p, entry: entry{kind: list.Kind}}); err != nil {
				return layout{}, err
			}
		}
	}
	if err := r.checkLinks(links); err != nil {
		return layout{}, err
	}
	return r.layout(links)
}

func (r *resolver) addMakes(files []policy.File) error {
	for i, m := range files {
		if err := r.addMake(rule{list: "Files.Make", index: i, asked: m.Path, entry: entry{kind: pathrule.Make, file: m}}); err != nil {
			return err
		}
	}
	return nil
}

// rule is an entry and where in the policy it comes from.
type rule struct {
	entry
	list   string
	index  int
	asked  string // the path as it was written
	absent bool   // not on the host
}

func (u rule) bad(problem, remedy string, err error) *PolicyError {
	field := errtext.Indexed(u.list, u.index)
	if u.kind == pathrule.Make {
		field += ".Path"
	}
	return &PolicyError{Field: field, Value: u.asked, Problem: problem, Remedy: remedy, Err: err}
}

// An Unfit says why a directory cannot be the workspace of a preset, to read or to write.
// The problem is "" where it can.
type Unfit func(dir string, write bool) (problem, remedy string)

// resolver finds canonical paths, each name looked up once.
type resolver struct {
	seen  map[string]*place // by clean absolute path as written
	links map[string]string // by the link's own canonical path
	rules map[string]rule   // by canonical path

	distrust []string // directories in which nothing is believed, and no link followed
	unfit    Unfit
	shared   []string // directories in which that goes for all but the user's own
}

// distrusts reports whether a tool, or another user, can have made what lies at p, which is
// canonical. Below a directory that all can write to, the user's own directories are
// as good as those of a home, as far as nobody else can write on the way to them.
func (r *resolver) distrusts(p string) bool {
	return pathrule.WithinAny(p, r.distrust) || slices.ContainsFunc(r.shared, func(dir string) bool { return pathrule.Within(p, dir) && !ownedBelow(dir, p) })
}

func newResolver() *resolver {
	return &resolver{seen: map[string]*place{"/": {path: "/", mode: fs.ModeDir}}, links: map[string]string{}, rules: map[string]rule{}}
}

// place is what a path leads to. While it is being found, it is in seen with
// busy set: coming back to it then is a loop.
type place struct {
	path string
	mode fs.FileMode
	hops int // links met on the way
	err  error
	busy bool
}

// find follows p, clean and absolute, to its canonical path.
func (r *resolver) find(p string) *place {
	if found := r.seen[p]; found != nil {
		if found.busy {
			return &place{err: syscall.ELOOP}
		}
		return found
	}
	found := &place{busy: true}
	r.seen[p] = found
	r.follow(found, p)
	found.busy = false
	return found
}

func (r *resolver) follow(found *place, p string) {
	parent := r.find(path.Dir(p))
	found.hops = parent.hops
	switch {
	case parent.err != nil:
		found.err = parent.err
		return
	case !parent.mode.IsDir():
		found.err = syscall.ENOTDIR
		return
	}
	found.path = pathrule.Join(parent.path, path.Base(p))
	if found.path != p { // reached by a link: what stands there may be known
		real := r.find(found.path)
		found.mode, found.err, found.path = real.mode, real.err, real.path
		found.hops += real.hops
		found.tooMany()
		return
	}
	info, err := os.Lstat(p)
	if err != nil {
		found.err = errors.Unwrap(err)
		return
	}
	if found.mode = info.Mode(); found.mode&fs.ModeSymlink != 0 {
		r.followLink(found, parent.path)
	}
}

// followLink continues at the target of the link at found.path, in dir.
func (r *resolver) followLink(found *place, dir string) {
	switch {
	case r.distrusts(found.path):
		found.err = fs.ErrPermission
		return
	case pathrule.Within(found.path, "/proc"): // it depends on who asks, and its text need not be a path (proc_pid_fd(5))
		found.err = errProc
		return
	}
	target, err := os.Readlink(found.path)
	if err != nil {
		found.err = errors.Unwrap(err)
		return
	}
	r.links[found.path] = target
	end := r.walk(dir, target)
	found.path, found.mode, found.err = end.path, end.mode, end.err
	found.hops += end.hops + 1
	found.tooMany()
}

var errProc = errors.New("a link of /proc means something else to each process")

func (p *place) tooMany() {
	if p.err == nil && p.hops > maxLinks {
		p.err = syscall.ELOOP
	}
}

// walk follows target from dir, which is canonical. It goes name by name, since
// ".." after a link leads to the parent of the link's target.
func (r *resolver) walk(dir, target string) *place {
	if strings.HasPrefix(target, "/") {
		dir = "/"
	}
	at := r.find(dir)
	hops := 0
	for name := range strings.SplitSeq(target, "/") {
		if name == "" || name == "." {
			continue
		}
		if at.err == nil && !at.mode.IsDir() {
			return &place{err: syscall.ENOTDIR}
		}
		at = r.find(path.Join(at.path, name)) // at.path is canonical: Join's ".." is right
		if hops += at.hops; at.err != nil {
			break
		}
	}
	return &place{path: at.path, mode: at.mode, hops: hops, err: at.err}
}

// add takes a rule of any kind but fileMake.
func (r *resolver) add(u rule) error {
	if u.kind == pathrule.Private || u.kind == pathrule.Hide {
		return r.addLate(u)
	}
	found := r.find(u.asked)
	if found.err != nil {
		return u.cannot(found.err)
	}
	u.path, u.dir = found.path, found.mode.IsDir()
	u.device = found.mode&fs.ModeDevice != 0
	switch {
	case u.kind == pathrule.CopyOnWrite && !u.dir:
		return u.bad("is a file", "name the directory it lies in", syscall.ENOTDIR)
	case u.kind == pathrule.Socket && found.mode&fs.ModeSocket == 0:
		return u.bad("is not a socket", "name the socket itself; Files.Read and Files.Write are for all else", syscall.ENOTSOCK)
	}
	return r.put(u)
}

func (u rule) cannot(err error) *PolicyError {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return u.bad("does not exist", "make it first, or remove the rule", err)
	case errors.Is(err, errProc):
		return u.bad("leads through /proc", "name the target", err)
	case err == errDangling:
		return u.bad("is "+err.Error(), "remove the link, or name another place", fs.ErrNotExist)
	case errors.Is(err, syscall.ELOOP):
		return u.bad("leads through too many symbolic links", "name the target", err)
	}
	return u.bad("cannot be looked up", "name what exists and the harness can reach, or remove the rule", err)
}

// put notes a rule at its canonical path.
func (r *resolver) put(u rule) error {
	if problem, remedy := pathrule.Reserved(u.path, u.kind); problem != "" {
		return u.bad("is "+u.path+": "+problem, remedy, nil)
	}
	if pathrule.Within(u.path, "/dev") && u.dir {
		return u.bad("is a directory of devices", "name the device files", nil)
	}
	if slices.Contains(ownDevices, u.path) {
		return nil
	}
	first, taken := r.rules[u.path]
	switch {
	case !taken, u.kind == pathrule.Socket && (first.kind == pathrule.Read || first.kind == pathrule.Write):
		r.rules[u.path] = u
	case first.kind != u.kind || first.file != u.file:
		return r.contradicts(u, first)
	}
	return nil
}

// contradicts is the error of two rules for one place. A preset lists a workspace
// that it does not take in Hide as well.
func (r *resolver) contradicts(u, first rule) error {
	what := errtext.Indexed(first.list, first.index)
	if r.unfit != nil && u.kind == pathrule.Hide && (first.kind == pathrule.Read || first.kind == pathrule.Write) {
		if problem, remedy := r.unfit(first.asked, first.kind == pathrule.Write); problem != "" {
			return first.bad("cannot be the workspace of a preset: "+problem, remedy, nil)
		}
	}
	return u.bad("contradicts "+what+", which is the same place ("+u.path+")", "remove one of the two; a preset wants a directory that holds one project", nil)
}

// canonical is realpath(3). Its error is an errno.
func canonical(p string) (string, fs.FileInfo, error) {
	real, err := filepath.EvalSymlinks(p)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Lstat(real)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return "", nil, errno
	}
	return real, info, err
}

// canonical returns the canonical forms of those paths that exist.
func (r *resolver) canonical(paths ...string) []string {
	var out []string
	for _, p := range paths {
		if problem, _ := pathrule.Check(p, pathrule.Read); problem != "" {
			continue
		}
		if at := r.find(p); at.err == nil {
			out = append(out, at.path)
		}
	}
	return out
}

// exist returns those of the paths that lead somewhere.
func (r *resolver) exist(paths ...string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return r.find(p).err != nil })
}
