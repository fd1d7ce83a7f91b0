package resolve

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

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Tree is a Files policy made concrete on this host: canonical paths, parents
// before children, and the links that lead to them.
type Tree struct {
	Entries []Entry
	Links   []Link
}

// Entry is one rule. What lies below it is of its kind, down to the next entry.
type Entry struct {
	Path     string
	Kind     pathrule.Kind
	Dir      bool        // a directory; otherwise a file of any type
	Kept     bool        // it is Files.Tmp or Files.Home
	device   bool        // a device file
	Shown    bool        // a socket that the entry around it shows already
	File     policy.File // of kind fileMake
	In       plan.FileID // of kind Hide: the directory around it
	AlsoRead bool        // of kind CopyOnWrite: Files.Read lists it too
	Own      string      // of kind CopyOnWrite: every directory below this one on the way to Path, and Path, is the user's own
}

// Link is a symbolic link of the host that has to be made again inside.
type Link struct{ Path, Target string }

// PTYs is the directory of the host's pseudo-terminals (pts(4)).
const PTYs = "/dev/pts"

// OwnDevices are in every sandbox's /dev, so that rules for them say nothing new.
var OwnDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// PresentDevices returns those of OwnDevices that this host has.
func PresentDevices() (present []string) {
	for _, d := range OwnDevices {
		if _, err := os.Lstat(d); err == nil {
			present = append(present, d)
		}
	}
	return present
}

// maxLinks is how many links one path may lead through: MAXSYMLINKS of
// include/linux/namei.h.
const maxLinks = 40

// Files makes f concrete. It reads names and links of the host and opens
// nothing; sockets are Network.Unix. The order of the result is that of the tree, so equal policies on
// equal hosts give equal layouts. An error is a *PolicyError.
func Files(f policy.Files, unfit Unfit, sockets ...string) (Tree, error) {
	r := New()
	r.unfit, r.hide, r.found = unfit, f.Hide, f.Found
	var links map[string]string
	for _, list := range f.Lists(sockets...) {
		if list.Kind == pathrule.Hide { // the last: its paths need no links inside
			if err := r.addMakes(f.Make); err != nil {
				return Tree{}, err
			}
			links = maps.Clone(r.Links)
		}
		for i, p := range list.Paths {
			if err := r.add(Rule{List: list, Index: i, Asked: p, Entry: Entry{Kind: list.Kind, Kept: list.Single}}); err != nil {
				return Tree{}, err
			}
		}
	}
	if err := r.checkLinks(links); err != nil {
		return Tree{}, err
	}
	return r.Tree(links)
}

var makes = pathrule.List{Field: "Files.Make", Kind: pathrule.Make}

func (r *Resolver) addMakes(files []policy.File) error {
	for i, m := range files {
		if err := r.addMake(Rule{List: makes, Index: i, Asked: m.Path, Entry: Entry{Kind: pathrule.Make, File: m}}); err != nil {
			return err
		}
	}
	return nil
}

// Rule is an entry and where in the policy it comes from.
type Rule struct {
	Entry
	List   pathrule.List
	Index  int
	Asked  string // the path as it was written
	Absent bool   // not on the host
}

func (u Rule) bad(problem, remedy string, err error) *policy.PolicyError {
	field := u.List.Name(u.Index)
	if u.Kind == pathrule.Make {
		field += ".Path"
	}
	return &policy.PolicyError{Field: field, Value: u.Asked, Problem: problem, Remedy: remedy, Err: err}
}

// Owned is a path with its owner and group.
type Owned struct {
	Path     string
	UID, GID uint32
}

// An Unfit says why a directory cannot be the workspace of a preset, to read or to write.
// The problem is "" where it can.
type Unfit func(dir string, write bool) (problem, remedy string)

// Resolver finds canonical paths, each name looked up once.
type Resolver struct {
	seen  map[string]*Target // by clean absolute path as written
	Links map[string]string  // by the link's own canonical path
	Rules map[string]Rule    // by canonical path

	Follow func(link string) bool // whether a link may be followed, by its path in a canonical directory; nil: each may
	unfit  Unfit
	hide   []string          // the policy's Files.Hide
	found  map[string]string // the policy's Files.Found
	ids    map[string]plan.FileID
}

// New returns a resolver that has looked nothing up yet.
func New() *Resolver {
	return &Resolver{seen: map[string]*Target{"/": {Path: "/", Mode: fs.ModeDir}}, Links: map[string]string{}, Rules: map[string]Rule{}, ids: map[string]plan.FileID{}}
}

// Target is what a path leads to. While it is being found, it is in seen with
// busy set: coming back to it then is a loop.
type Target struct {
	Path string
	Mode fs.FileMode
	Hops int // links met on the way
	Err  error
	busy bool
}

// Find follows p, clean and absolute, to its canonical path.
func (r *Resolver) Find(p string) *Target {
	if found := r.seen[p]; found != nil {
		if found.busy {
			return &Target{Err: syscall.ELOOP}
		}
		return found
	}
	found := &Target{busy: true}
	r.seen[p] = found
	r.follow(found, p)
	found.busy = false
	return found
}

func (r *Resolver) follow(found *Target, p string) {
	parent := r.Find(path.Dir(p))
	found.Hops = parent.Hops
	switch {
	case parent.Err != nil:
		found.Err = parent.Err
		return
	case !parent.Mode.IsDir():
		found.Err = syscall.ENOTDIR
		return
	}
	found.Path = pathrule.Join(parent.Path, path.Base(p))
	if found.Path != p { // reached by a link: what stands there may be known
		real := r.Find(found.Path)
		found.Mode, found.Err, found.Path = real.Mode, real.Err, real.Path
		found.Hops += real.Hops
		found.tooMany()
		return
	}
	info, err := os.Lstat(p)
	if err != nil {
		found.Err = errors.Unwrap(err)
		return
	}
	if found.Mode = info.Mode(); found.Mode&fs.ModeSymlink != 0 {
		r.followLink(found, parent.Path)
	}
}

// followLink continues at the target of the link at found.path, in dir.
func (r *Resolver) followLink(found *Target, dir string) {
	switch {
	case r.Follow != nil && !r.Follow(found.Path):
		found.Err = fs.ErrPermission
		return
	case pathrule.Within(found.Path, "/proc"): // it depends on who asks, and its text need not be a path (proc_pid_fd(5))
		found.Err = errProc
		return
	}
	target, err := os.Readlink(found.Path)
	if err != nil {
		found.Err = errors.Unwrap(err)
		return
	}
	r.Links[found.Path] = target
	end := r.walk(dir, target)
	found.Path, found.Mode, found.Err = end.Path, end.Mode, end.Err
	found.Hops += end.Hops + 1
	found.tooMany()
}

var errProc = errors.New("a link of /proc means something else to each process")

func (p *Target) tooMany() {
	if p.Err == nil && p.Hops > maxLinks {
		p.Err = syscall.ELOOP
	}
}

// walk follows target from dir, which is canonical. It goes name by name, since
// ".." after a link leads to the parent of the link's target.
func (r *Resolver) walk(dir, target string) *Target {
	if strings.HasPrefix(target, "/") {
		dir = "/"
	}
	at := r.Find(dir)
	hops := 0
	for name := range strings.SplitSeq(target, "/") {
		if name == "" || name == "." {
			continue
		}
		if at.Err == nil && !at.Mode.IsDir() {
			return &Target{Err: syscall.ENOTDIR}
		}
		at = r.Find(path.Join(at.Path, name)) // at.path is canonical: Join's ".." is right
		if hops += at.Hops; at.Err != nil {
			break
		}
	}
	return &Target{Path: at.Path, Mode: at.Mode, Hops: hops, Err: at.Err}
}

// add takes a rule of any kind but fileMake.
func (r *Resolver) add(u Rule) error {
	if u.Kind == pathrule.Private || u.Kind == pathrule.Hide {
		return r.addLate(u)
	}
	found := r.Find(u.Asked)
	if found.Err != nil {
		return u.cannot(found.Err)
	}
	if moved(r.found, u.Asked, found.Path) {
		return u.bad("leads to "+found.Path+", and led to "+r.found[u.Asked]+" when the preset was made", "make the policy again", nil)
	}
	u.Path, u.Dir = found.Path, found.Mode.IsDir()
	u.device = found.Mode&fs.ModeDevice != 0
	switch {
	case u.Kind == pathrule.CopyOnWrite && !u.Dir:
		return u.bad("is a file", "name the directory it lies in", syscall.ENOTDIR)
	case u.Kind == pathrule.Socket && found.Mode&fs.ModeSocket == 0:
		return u.bad("is not a socket", "name the socket itself; Files.Read and Files.Write are for all else", syscall.ENOTSOCK)
	}
	return r.Put(u)
}

// moved reports whether a path of Files.Found leads to another place than it did.
func moved(found map[string]string, p, real string) bool {
	was, known := found[p]
	return known && was != real
}

func (u Rule) cannot(err error) *policy.PolicyError {
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(u.Asked, "*?[{"):
		return u.bad("does not exist, and paths take no patterns", "list each path, or the directory around them; Files.HideNames and Files.Protect.Add take names with *", err)
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

// Put notes a rule at its canonical path.
func (r *Resolver) Put(u Rule) error {
	if problem, remedy := pathrule.Reserved(u.Path, u.Kind); problem != "" {
		return u.bad("is "+u.Path+": "+problem, remedy, nil)
	}
	if pathrule.Within(u.Path, "/dev") && u.Dir {
		return u.bad("is a directory of devices", "name the device files", nil)
	}
	if slices.Contains(OwnDevices, u.Path) {
		return nil
	}
	first, taken := r.Rules[u.Path]
	switch {
	case !taken, u.Kind == pathrule.Socket && (first.Kind == pathrule.Read || first.Kind == pathrule.Write):
		r.Rules[u.Path] = u
	case first.Kind == pathrule.Read && u.Kind == pathrule.CopyOnWrite: // a copy can be read
		u.AlsoRead = true
		r.Rules[u.Path] = u
	case first.Kind == pathrule.CopyOnWrite && u.Kind == pathrule.Read:
		first.AlsoRead = true
		r.Rules[u.Path] = first
	case first.Kind != u.Kind || first.File != u.File:
		return r.contradicts(u, first)
	}
	return nil
}

// contradicts is the error of two rules for one place. A preset lists a workspace
// that it does not take in Hide or, if it is a directory of the system, in Read as well.
func (r *Resolver) contradicts(u, first Rule) error {
	what := first.List.Name(first.Index)
	byPreset := u.Kind == pathrule.Hide || u.Kind == pathrule.Private && slices.Contains(r.hide, first.Asked) // HOME, or /tmp
	for _, w := range []Rule{first, u} {
		if r.unfit == nil || w.Kind != pathrule.Write && (w.Kind != pathrule.Read || !byPreset) {
			continue
		}
		if problem, remedy := r.unfit(w.Asked, w.Kind == pathrule.Write); problem != "" {
			return w.bad("cannot be the workspace of a preset: "+problem, remedy, nil)
		}
	}
	return u.bad("contradicts "+what+", which is the same place ("+u.Path+")", "remove one of the two", nil)
}

// Canonical is realpath(3). Its error is an errno.
func Canonical(p string) (string, fs.FileInfo, error) {
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

// Canonical returns the canonical forms of those paths that exist.
func (r *Resolver) Canonical(paths ...string) []string {
	var out []string
	for _, p := range paths {
		if problem, _ := pathrule.Check(p, pathrule.Read); problem != "" {
			continue
		}
		if at := r.Find(p); at.Err == nil {
			out = append(out, at.Path)
		}
	}
	return out
}

// Exist returns those of the paths that lead somewhere.
func (r *Resolver) Exist(paths ...string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return r.Find(p).Err != nil })
}
