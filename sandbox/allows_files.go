package sandbox

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A meaning is a policy's file rules in a form in which they can be asked.
type meaning struct {
	policy  Policy
	entries map[string]entry  // by path; those of Files that say something
	fields  map[string]string // by path: where the entry comes from
	above   map[string]string // directories on the way to an entry, with the path of one such
	roots   []string          // of Write, sorted as the tree is
	names   *nameRules
}

// meaning takes the policy's paths as they are: existing, and canonical.
func newMeaning(p Policy) (*meaning, error) {
	if err := validate(p); err != nil {
		return nil, err
	}
	m := &meaning{policy: p, entries: map[string]entry{}, fields: map[string]string{}}
	if p.Root != nil {
		return m, nil
	}
	r := newResolver()
	for _, u := range rulesOf(p.Files, p.Network.Unix...) {
		if err := r.put(u); err != nil {
			return nil, err
		}
	}
	l, err := r.layout(nil)
	if err != nil {
		return nil, err
	}
	for _, e := range l.entries {
		if e.shown {
			continue // as the tree around it is
		}
		u := r.rules[e.path]
		m.entries[e.path], m.fields[e.path] = e, errtext.Indexed(u.list, u.index)
	}
	m.prepare()
	return m, nil
}

// rules are all rules about paths, as they are written.
func rulesOf(f Files, sockets ...string) []rule {
	var out []rule
	for _, list := range f.Lists(sockets...) {
		for i, p := range list.Paths {
			dir := !pathrule.Within(p, "/dev") && list.Kind != pathrule.Socket // /dev has only device files to name
			out = append(out, rule{list: list.Field, index: i, asked: p, entry: entry{path: p, kind: list.Kind, dir: dir}})
		}
	}
	for i, m := range f.Make {
		out = append(out, rule{list: "Files.Make", index: i, asked: m.Path, absent: true, entry: entry{path: m.Path, kind: pathrule.Make, file: m}})
	}
	return out
}

// prepare fills in what follows from the entries.
func (m *meaning) prepare() {
	m.above = map[string]string{}
	for p, e := range m.entries {
		for dir := path.Dir(p); ; dir = path.Dir(dir) {
			if first, ok := m.above[dir]; !ok || pathrule.TreeOrder(p, first) < 0 {
				m.above[dir] = p
			}
			if dir == "/" {
				break
			}
		}
		if e.kind == pathrule.Write && e.dir {
			m.roots = append(m.roots, p)
		}
	}
	slices.SortFunc(m.roots, pathrule.TreeOrder)
	m.names = newNameRules(m.policy.Files)
}

// A standing is what a place is to the tool.
type standing uint8

const (
	ofNothing  standing = iota // nothing is there
	ofPassage                  // a directory on the way to something that is
	ofCover                    // hidden: an empty thing that cannot be opened
	ofHidden                   // below what is hidden
	ofShown                    // can be read and executed
	ofMade                     // a file of Make, which cannot be changed
	ofChange                   // can be changed
	ofDevice                   // a device file: read and written, and not changed
	ofProc                     // the sandbox's own /proc
	ofTerminal                 // /dev/pts and what is in it
	ofSocket                   // a socket of the host's that can be connected to
)

// stands says what p is, and by which entry; the entry's path is "" if there is
// none.
func (m *meaning) stands(p string) (standing, entry) {
	for at := p; ; at = path.Dir(at) {
		if e, ok := m.entries[at]; ok {
			s := m.by(e, p)
			if !e.dir && p != at && (e.kind != pathrule.Make || s != ofChange) { // a file which cannot give way to a directory
				return ofNothing, entry{}
			}
			return s, e
		}
		if s, ok := m.own(at, p); ok {
			if e := m.entries["/"]; at == "/dev" && e.kind == pathrule.Write && e.path != "" {
				s = ofChange // it is an empty directory with a few devices
			}
			return s, entry{}
		}
		if at == "/" {
			break
		}
	}
	if _, ok := m.above[p]; ok || p == "/" {
		return ofPassage, entry{}
	}
	return ofNothing, entry{}
}

// by says what p is to an entry that it lies in.
func (m *meaning) by(e entry, p string) standing {
	switch e.kind {
	case pathrule.Read:
		if pathrule.Within(e.path, "/dev") {
			return ofCover // devices do not work there: name them in Write
		}
		return ofShown
	case pathrule.Socket:
		return ofSocket
	case pathrule.Make:
		if s, around := m.stands(path.Dir(e.path)); s == ofChange && around.kind == pathrule.Private {
			return ofChange
		}
		return ofMade
	case pathrule.Hide:
		if p == e.path {
			return ofCover
		}
		if _, leads := m.above[p]; leads {
			return ofPassage
		}
		return ofHidden
	}
	return ofChange
}

// own says what p is by at, a place that every sandbox has of its own. ok is
// false if at is none.
func (m *meaning) own(at, p string) (s standing, ok bool) {
	switch {
	case at == "/proc" && pathrule.WithinAny(p, closedProc) && !slices.Contains(m.policy.Open, policy.BoundProcesses):
		return ofCover, true
	case at == "/proc":
		return ofProc, true
	case slices.Contains(ownDevices, at) && at == p:
		return ofDevice, true
	case slices.Contains(ownDevices, at):
		return ofNothing, true
	case at == "/dev/shm":
		return ofChange, true
	case at == "/dev/pts":
		return ofTerminal, true
	case p == "/dev":
		return ofPassage, true
	}
	return ofNothing, at == "/dev"
}

// closedProc is what the sandbox's /proc has and does not let be read: it is the
// machine's and not a process's.
var closedProc = func() []string {
	var list []string
	for _, name := range plan.HiddenProc {
		list = append(list, "/proc/"+name)
	}
	return list
}()

// allowsFile answers for acts on paths.
func (m *meaning) allowsFile(a Act) (bool, Reason) {
	paths := []string{a.Path}
	if a.Do == ToRename || a.Do == ToLink {
		paths = append(paths, a.To)
	}
	for _, p := range paths {
		if e := checkPathText(p); e != "" {
			return false, Reason{Bound: policy.BoundFiles, Why: "the path " + strconv.Quote(p) + " " + e, Remedy: "write it absolute and clean"}
		}
		if p == "/" && slices.Contains([]Deed{ToCreate, ToRemove, ToRename, ToLink, ToSymlink, ToBind}, a.Do) {
			return false, Reason{Bound: policy.BoundFiles, Why: "the root directory has no name that could come or go"}
		}
	}
	if i := slices.Index(m.policy.Open, policy.BoundFiles); i >= 0 && !m.inOwnProc(paths) {
		return true, Reason{Bound: policy.BoundFiles, Field: errtext.Indexed("Open", i), Why: "the policy does not bound files"}
	}
	if m.policy.Root != nil {
		return false, Reason{Bound: policy.BoundFiles, Field: "Root", Why: "a layout's entries say what exists, and are not asked here", Remedy: "see Sandbox.Explain"}
	}
	if ok, r := m.atPlace(a); !ok {
		return false, r
	}
	return m.byName(a)
}

// inOwnProc reports whether a path lies in the /proc that the sandbox has of its
// own, also with the harness's root around it.
func (m *meaning) inOwnProc(paths []string) bool {
	if slices.Contains(m.policy.Open, policy.BoundProcesses) {
		return false
	}
	return slices.ContainsFunc(paths, func(p string) bool { return pathrule.Within(p, "/proc") })
}

// checkPathText says what is wrong with an act's path.
func checkPathText(p string) string {
	switch {
	case p == "" || p[0] != '/':
		return "is not absolute"
	case strings.ContainsRune(p, 0):
		return "has a NUL byte"
	case path.Clean(p) != p:
		return "is not clean"
	}
	return ""
}

// atPlace asks the rules about paths.
func (m *meaning) atPlace(a Act) (bool, Reason) {
	s, e := m.stands(a.Path)
	if s == ofProc && a.Do == ToWrite {
		return m.say(m.writesProc(), a.Path, s, e, a.Do)
	}
	switch a.Do {
	case ToRead, ToList, ToStat, ToWrite, ToExecute, ToConnect:
		return m.say(sees(s, a, e), a.Path, s, e, a.Do)
	case ToChmod, ToSetXattr:
		return m.say(s == ofChange || a.Path == "/dev", a.Path, s, e, a.Do)
	case ToCreate, ToSymlink, ToBind:
		return m.changes(a.Path, a.Do, comes)
	case ToRemove:
		return m.changes(a.Path, a.Do, goes)
	case ToLink:
		if _, dir := m.above[a.Path]; s != ofChange || m.isMount(a.Path) || dir {
			return m.say(false, a.Path, s, e, a.Do)
		}
	case ToRename:
		if ok, r := m.changes(a.Path, a.Do, moves); !ok {
			return false, r
		}
	}
	return m.changes(a.To, a.Do, goes) // what stood there goes
}

// What becomes of a name.
type change uint8

const (
	comes change = iota
	goes
	moves
)

// writesProc: what of /proc is a process's can be written where all files can.
func (m *meaning) writesProc() bool {
	e, ok := m.entries["/"]
	return (ok && e.kind == pathrule.Write || slices.Contains(m.policy.Open, policy.BoundFiles)) && !slices.Contains(m.policy.Open, policy.BoundProcesses)
}

// sees says whether what stands there can be read, listed, seen, written,
// executed or connected to.
func sees(s standing, a Act, e entry) bool {
	switch a.Do {
	case ToStat:
		return s != ofNothing && s != ofHidden
	case ToList:
		return s == ofPassage || (s == ofShown || s == ofChange) && !pathrule.Within(e.path, "/dev") || s == ofProc || s == ofTerminal
	case ToRead:
		return s == ofShown || s == ofMade || s == ofChange || s == ofDevice || s == ofProc || s == ofTerminal && a.Path != "/dev/pts"
	case ToWrite:
		return s == ofChange || s == ofDevice || s == ofTerminal && a.Path != "/dev/pts"
	case ToExecute:
		return (s == ofShown || s == ofChange) && !pathrule.Within(e.path, "/dev") || s == ofMade && e.file.Mode.Perm()&0o111 != 0
	}
	// ToConnect: a socket of a shown tree, or one that is granted itself.
	return (s == ofShown || s == ofChange) && !pathrule.Within(e.path, "/dev") || s == ofSocket
}

// changes says whether the name p can be made, or taken away.
//
// A directory in which a rule holds further down is not empty. Below Write it
// cannot be moved either: a tool could put a decoy in its place, for the next run
// to hold.
func (m *meaning) changes(p string, d Deed, c change) (bool, Reason) {
	s, e := m.stands(p)
	below, holds := m.above[p]
	switch {
	case s != ofChange:
		return m.say(false, p, s, e, d)
	case m.isMount(p):
		return false, Reason{Bound: policy.BoundFiles, Field: m.fields[p], Why: p + " is where this rule holds: it stays in its place"}
	case holds && (c != moves || e.kind == pathrule.Write):
		return false, Reason{Bound: policy.BoundFiles, Field: m.fields[below], Why: p + " leads to " + below + ", where this rule holds: it stays in its place"}
	}
	return m.say(true, p, s, e, d)
}

// isMount reports whether an entry stands at p that cannot be moved.
func (m *meaning) isMount(p string) bool {
	e, ok := m.entries[p]
	return ok && e.kind != pathrule.Make || p == "/dev" || p == "/dev/shm"
}

// say puts an answer about p into words.
func (m *meaning) say(ok bool, p string, s standing, e entry, d Deed) (bool, Reason) {
	r := Reason{Bound: policy.BoundFiles, Field: m.fields[e.path]}
	r.Why = cmp.Or(standings[s], "") + ": " + p
	if e.path != "" {
		r.Why = kindWords[e.kind] + ": " + p
		if e.path != p {
			r.Why += " lies in " + e.path
		}
	}
	if !ok {
		r.Remedy = remedyFor(d, s, e)
	}
	return ok, r
}

var standings = [...]string{
	ofNothing: "no rule shows it", ofPassage: "a directory that leads to what is shown", ofDevice: "a device file of every sandbox", ofProc: "the sandbox has a /proc of its own, to read",
	ofTerminal: "the sandbox has terminals of its own", ofChange: "a directory of the sandbox's own", ofCover: "the sandbox does not have it", ofShown: "", ofMade: "", ofHidden: "", ofSocket: "",
}

var kindWords = [...]string{
	pathrule.Read: "shown to read", pathrule.Write: "shown to read and write", pathrule.CopyOnWrite: "what is changed there is the run's own copy", pathrule.Private: "a directory of the run's own, empty at its start",
	pathrule.Make: "a file that is made inside", pathrule.Hide: "hidden",
	pathrule.Socket: "a socket that may be connected to",
}

func remedyFor(d Deed, s standing, e entry) string {
	switch {
	case s == ofHidden || s == ofCover && e.kind == pathrule.Hide:
		return "take it out of Files.Hide, or name what is inside in Files.Read or Files.Write"
	case pathrule.Within(e.path, "/dev") && e.path != "":
		return "name the device in Files.Write"
	case s == ofProc || s == ofDevice || s == ofTerminal || s == ofCover:
		return ""
	case s == ofMade:
		return "put the file in a Private directory"
	case d == ToRead || d == ToList || d == ToStat || d == ToExecute || d == ToConnect:
		return "name it, or a directory around it, in Files.Read"
	}
	return "name it, or a directory around it, in Files.Write"
}
