package runner

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// mostWatched is how many different failures are kept of those that Files.Watch has seen.
const mostWatched = 512

// A watcher keeps, of what Files.Watch has recorded, the failures that the policy is the reason of: what fails outside too is no denial.
type watcher struct {
	sandbox *Sandbox
	autofs  []string // directories in which a look can have the machine mount something
	list    []policy.Violation
	seen    map[watched]int // index in list
	beyond  uint64          // denials of which list has none

	until time.Time   // when the looks of one pass over the ring have had their time
	hung  chan judged // a look that has not ended; nil: there is none
	blind uint64      // records whose paths were not looked at
}

// lookPatience is how long the paths of one pass over the ring are looked at, outside: a file system whose server is gone does not answer.
const lookPatience = 2 * time.Second

type watched struct {
	deed     supervisor.Deed
	path     [2]string
	noFollow bool
}

func newWatcher(s *Sandbox) *watcher {
	w := &watcher{sandbox: s, seen: map[watched]int{}}
	for at, kind := range hostMounts() {
		if kind == "autofs" {
			w.autofs = append(w.autofs, at)
		}
	}
	return w
}

// empty takes the records out of the ring, and returns how many were lost. Their paths are looked at for lookPatience at most.
func (w *watcher) empty(ring *supervisor.WatchReader) (lost uint64) {
	w.until = time.Now().Add(lookPatience)
	return ring.All(w.add)
}

// add takes one record.
func (w *watcher) add(d supervisor.Denial) {
	key := watched{d.Deed, d.Paths, d.NoFollow}
	if i, ok := w.seen[key]; ok {
		w.list[i].Count++
		return
	}
	if j := w.look(d); j.denied {
		w.keep(key, j.violation)
	}
}

// keep keeps a denial, if there is room: as one with what reads the same, such as a look at a name that does not follow a link there.
func (w *watcher) keep(key watched, r policy.Violation) {
	if i := slices.IndexFunc(w.list, func(o policy.Violation) bool {
		return o.Operation == r.Operation && o.Path == r.Path && o.To == r.To && o.Rule == r.Rule && o.Why == r.Why
	}); i >= 0 {
		w.seen[key] = i
		w.list[i].Count++
		return
	}
	if len(w.list) >= mostWatched {
		w.beyond++
		return
	}
	w.seen[key] = len(w.list)
	w.list = append(w.list, r)
}

// judged is what became of a look.
type judged struct {
	violation policy.Violation
	denied    bool // else it is no denial
}

// look judges one record, in a goroutine of its own, which stays behind if a file system does not answer. Until it has
// ended nothing else is looked at; nor is anything for which the pass has no time left.
func (w *watcher) look(d supervisor.Denial) judged {
	select {
	case <-w.hung:
		w.hung = nil
	default:
	}
	left := time.Until(w.until)
	if w.hung != nil || left <= 0 {
		w.blind++
		return judged{}
	}
	done := make(chan judged, 1)
	go func() {
		v, denied := w.judge(d)
		done <- judged{v, denied}
	}()
	tooLong := time.NewTimer(left)
	defer tooLong.Stop()
	select {
	case j := <-done:
		return j
	case <-tooLong.C:
	}
	w.hung = done
	r := refusedOf(d)
	r.Why, r.Remedy = "whether it is there outside is not known: its file system did not answer the harness in time", nothing+"a file system that answers is needed"
	return judged{r.printable(), true}
}

// judge says why the policy had the deed fail; false: it would have failed outside, or the policy grants it, and the kernel has
// another reason.
func (w *watcher) judge(d supervisor.Denial) (policy.Violation, bool) {
	for k, p := range d.Paths {
		if p == "" || d.Cut[k] {
			continue
		}
		place, ok := w.find(p, !d.NoFollow || k == 1)
		if place.tooLong {
			r := refusedOf(d)
			r.Why, r.Remedy = "whether it is there outside is not known: its path, with the links on it, has too many components", nothing+"a shorter path is needed"
			return r.printable(), true
		}
		if !ok || !place.works(d.Deed) {
			return policy.Violation{}, false
		}
		rule, shown := w.sandbox.Tree.Around(place.real)
		if shown && place.missing == "" && (rule.Kind == pathrule.Write || rule.Kind == pathrule.CopyOnWrite || rule.Kind == pathrule.Read && !writes(d.Deed)) {
			continue
		}
		r := refusedOf(d)
		if path.Clean(p) != p {
			p = place.real
		}
		if r.Path = p; k == 1 {
			r.Path, r.To = d.Paths[0], p
		}
		place.asked = p
		place.explain(&r, d.Deed, rule.Kind, rule.Path, shown)
		return r.printable(), true
	}
	return policy.Violation{}, false
}

// writes reports whether a deed changes what it is about.
func writes(d supervisor.Deed) bool {
	return d != supervisor.DeedLook && d != supervisor.DeedRead && d != supervisor.DeedExecute
}

// A place is where a path leads outside.
type place struct {
	asked, real string
	missing     string // a directory or link on the way that is not there inside; "": there is none
	isLink      bool   // it is a link
	mode        fs.FileMode
	there       bool // else only its directory is
	tooLong     bool // it was not followed to its end
}

// mostComponents is how many components of a path and of the links on it are looked at: each is a system call. The kernel follows 40 links
// of 4,095 bytes each (path_resolution(7)).
const mostComponents = 4096

// isInside reports whether something of the host's is at a path inside: the policy shows it, or what lies in it.
func (s *Sandbox) isInside(p string) bool {
	if !s.Plan.Namespaces.Mount {
		return true
	}
	around, shown := s.Tree.Around(p)
	if shown && (around.Kind == pathrule.Read || around.Kind == pathrule.Write || around.Kind == pathrule.CopyOnWrite) {
		return true
	}
	return slices.ContainsFunc(s.Tree.Entries, func(e resolve.Entry) bool { return e.Kind != pathrule.Hide && pathrule.Within(e.Path, p) }) ||
		slices.ContainsFunc(s.Tree.Links, func(l resolve.Link) bool { return pathrule.Within(l.Path, p) })
}

// find follows a path outside. It is the tool's text, and the harness must do nothing by it but look: what is mounted on demand, by a
// look at a name of the tool's choice, is left alone, and so is /proc, which is another inside.
func (w *watcher) find(p string, follow bool) (place, bool) {
	at, rest, links, f := "/", components(p), 0, place{}
	follow = follow || strings.HasSuffix(p, "/.")
	for seen := 0; len(rest) > 0; seen++ {
		if seen+len(rest) > mostComponents {
			return place{tooLong: true}, false
		}
		name, last := rest[0], len(rest) == 1
		rest = rest[1:]
		if name == ".." {
			at = path.Dir(at)
			continue
		}
		next := pathrule.Join(at, name)
		if pathrule.Within(next, "/proc") || pathrule.WithinAny(next, w.autofs) {
			return place{}, false
		}
		info, err := os.Lstat(next)
		if err == nil && f.missing == "" && (!last || info.Mode()&fs.ModeSymlink != 0) && !w.sandbox.isInside(next) {
			f.missing, f.isLink = next, info.Mode()&fs.ModeSymlink != 0
		}
		switch {
		case err != nil:
			f.real = next
			return f, last && os.IsNotExist(err)
		case info.Mode()&fs.ModeSymlink != 0 && (follow || !last):
			target, err := os.Readlink(next)
			if links++; err != nil || links > 40 {
				return place{}, false
			}
			if path.IsAbs(target) {
				at = "/"
			}
			rest = append(components(target), rest...)
			continue
		}
		at = next
	}
	info, err := os.Lstat(at)
	if err != nil {
		return place{}, false
	}
	f.real, f.mode, f.there = at, info.Mode(), true
	return f, true
}

// components are those that lead somewhere.
func components(p string) []string {
	return slices.DeleteFunc(strings.Split(p, "/"), func(name string) bool { return name == "" || name == "." })
}

// works reports whether the harness could do the deed there.
func (p place) works(d supervisor.Deed) bool {
	may := func(at string, access uint32) bool {
		return unix.Faccessat(unix.AT_FDCWD, at, access, unix.AT_EACCESS) == nil
	}
	switch d {
	case supervisor.DeedLook:
		return p.there
	case supervisor.DeedRead:
		return p.there && may(p.real, unix.R_OK)
	case supervisor.DeedExecute:
		return p.there && p.mode.IsRegular() && may(p.real, unix.X_OK)
	case supervisor.DeedWrite, supervisor.DeedTruncate:
		return p.there && !p.mode.IsDir() && may(p.real, unix.W_OK)
	case supervisor.DeedMode, supervisor.DeedOwner, supervisor.DeedTimes, supervisor.DeedAttribute:
		return p.there && may(p.real, unix.W_OK)
	case supervisor.DeedCreate:
		if p.there {
			return may(p.real, unix.W_OK)
		}
	}
	return p.real != "/" && may(path.Dir(p.real), unix.W_OK|unix.X_OK)
}

// explain fills in why the policy is the reason, and what in it would change that.
func (p place) explain(r *refused, d supervisor.Deed, kind pathrule.Kind, rule string, shown bool) {
	r.Rule = rule
	on := p.missing != "" && shown && (kind == pathrule.Write || kind == pathrule.CopyOnWrite || kind == pathrule.Read && !writes(d))
	switch {
	case on:
		r.Rule, r.Why = "", "the policy does not show "+errtext.Printable(quoted(p.missing))+", which is on the way"
	case !shown:
		r.Why = "the policy does not show this path"
	case kind == pathrule.Hide:
		r.Why, r.Remedy = "the policy hides this path", "take "+quoted(rule)+" out of Files.Hide, if the tool may have what lies there"
		return
	case kind == pathrule.Read:
		r.Why = "the policy shows this path to be read alone"
	default:
		r.Why = "the sandbox has its own file or directory there, not the host's"
	}
	field, list, value := "Files.Read", pathrule.Read, p.asked
	switch {
	case on && !p.isLink:
		value, p.mode = p.missing, fs.ModeDir
	case on:
	case writes(d):
		field, list = "Files.Write", pathrule.Write
		if !p.there || d != supervisor.DeedWrite && d != supervisor.DeedCreate && d != supervisor.DeedTruncate {
			value = path.Dir(p.real)
		}
	}
	if problem, _ := pathrule.Check(value, list); problem != "" || value == "/" {
		r.Remedy = nothing + "the tool has to do without it"
		return
	}
	r.Remedy = "add " + quoted(value) + " to " + field
	r.Widening = policy.Widening{Field: field, Value: value, Tree: p.mode.IsDir() || value != p.asked, Look: d == supervisor.DeedLook}
}
