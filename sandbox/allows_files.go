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
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A meaning is a policy's file rules in a form in which they can be asked.
type meaning struct {
	policy  Policy
	entries map[string]resolve.Entry // by path; those of Files that say something
	fields  map[string]string        // by path: where the entry comes from
	above   map[string]string        // directories on the way to an entry, with the path of one such
	roots   []string                 // of Write, sorted as the tree is
	names   *nameRules
}

// meaning takes the policy's paths as they are: existing, and canonical.
func newMeaning(p Policy) (*meaning, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m := &meaning{policy: p, entries: map[string]resolve.Entry{}, fields: map[string]string{}}
	if p.Root != nil {
		return m, nil
	}
	r := resolve.New()
	for _, u := range rulesOf(p.Files, p.Network.Unix...) {
		if err := r.Put(u); err != nil {
			return nil, err
		}
	}
	l, err := r.Tree(nil)
	if err != nil {
		return nil, err
	}
	for _, e := range l.Entries {
		if e.Shown {
			continue // as the tree around it is
		}
		u := r.Rules[e.Path]
		m.entries[e.Path], m.fields[e.Path] = e, errtext.Indexed(u.List, u.Index)
	}
	m.prepare()
	return m, nil
}

// rules are all rules about paths, as they are written.
func rulesOf(f Files, sockets ...string) []resolve.Rule {
	var out []resolve.Rule
	for _, list := range f.Lists(sockets...) {
		for i, p := range list.Paths {
			dir := !pathrule.Within(p, "/dev") && list.Kind != pathrule.Socket // /dev has only device files to name
			out = append(out, resolve.Rule{List: list.Field, Index: i, Asked: p, Entry: resolve.Entry{Path: p, Kind: list.Kind, Dir: dir}})
		}
	}
	for i, m := range f.Make {
		out = append(out, resolve.Rule{List: "Files.Make", Index: i, Asked: m.Path, Absent: true, Entry: resolve.Entry{Path: m.Path, Kind: pathrule.Make, File: m}})
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
		if e.Kind == pathrule.Write && e.Dir {
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
func (m *meaning) stands(p string) (standing, resolve.Entry) {
	for at := p; ; at = path.Dir(at) {
		if e, ok := m.entries[at]; ok {
			s := m.by(e, p)
			if !e.Dir && p != at && (e.Kind != pathrule.Make || s != ofChange) { // a file which cannot give way to a directory
				return ofNothing, resolve.Entry{}
			}
			return s, e
		}
		if s, ok := m.own(at, p); ok {
			if e := m.entries["/"]; at == "/dev" && e.Kind == pathrule.Write && e.Path != "" {
				s = ofChange // it is an empty directory with a few devices
			}
			return s, resolve.Entry{}
		}
		if at == "/" {
			break
		}
	}
	if _, ok := m.above[p]; ok || p == "/" {
		return ofPassage, resolve.Entry{}
	}
	return ofNothing, resolve.Entry{}
}

// by says what p is to an entry that it lies in.
func (m *meaning) by(e resolve.Entry, p string) standing {
	switch e.Kind {
	case pathrule.Read:
		if pathrule.Within(e.Path, "/dev") {
			return ofCover // devices do not work there: name them in Write
		}
		return ofShown
	case pathrule.Socket:
		return ofSocket
	case pathrule.Make:
		if s, around := m.stands(path.Dir(e.Path)); s == ofChange && around.Kind == pathrule.Private {
			return ofChange
		}
		return ofMade
	case pathrule.Hide:
		if p == e.Path {
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
	case slices.Contains(resolve.OwnDevices, at) && at == p:
		return ofDevice, true
	case slices.Contains(resolve.OwnDevices, at):
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
	return (ok && e.Kind == pathrule.Write || slices.Contains(m.policy.Open, policy.BoundFiles)) && !slices.Contains(m.policy.Open, policy.BoundProcesses)
}

// sees says whether what stands there can be read, listed, seen, written,
// executed or connected to.
func sees(s standing, a Act, e resolve.Entry) bool {
	switch a.Do {
	case ToStat:
		return s != ofNothing && s != ofHidden
	case ToList:
		return s == ofPassage || (s == ofShown || s == ofChange) && !pathrule.Within(e.Path, "/dev") || s == ofProc || s == ofTerminal
	case ToRead:
		return s == ofShown || s == ofMade || s == ofChange || s == ofDevice || s == ofProc || s == ofTerminal && a.Path != "/dev/pts"
	case ToWrite:
		return s == ofChange || s == ofDevice || s == ofTerminal && a.Path != "/dev/pts"
	case ToExecute:
		return (s == ofShown || s == ofChange) && !pathrule.Within(e.Path, "/dev") || s == ofMade && e.File.Mode.Perm()&0o111 != 0
	}
	// ToConnect: a socket of a shown tree, or one that is granted itself.
	return (s == ofShown || s == ofChange) && !pathrule.Within(e.Path, "/dev") || s == ofSocket
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
	case holds && (c != moves || e.Kind == pathrule.Write):
		return false, Reason{Bound: policy.BoundFiles, Field: m.fields[below], Why: p + " leads to " + below + ", where this rule holds: it stays in its place"}
	}
	return m.say(true, p, s, e, d)
}

// isMount reports whether an entry stands at p that cannot be moved.
func (m *meaning) isMount(p string) bool {
	e, ok := m.entries[p]
	return ok && e.Kind != pathrule.Make || p == "/dev" || p == "/dev/shm"
}

// say puts an answer about p into words.
func (m *meaning) say(ok bool, p string, s standing, e resolve.Entry, d Deed) (bool, Reason) {
	r := Reason{Bound: policy.BoundFiles, Field: m.fields[e.Path]}
	r.Why = cmp.Or(standings[s], "") + ": " + p
	if e.Path != "" {
		r.Why = kindWords[e.Kind] + ": " + p
		if e.Path != p {
			r.Why += " lies in " + e.Path
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

func remedyFor(d Deed, s standing, e resolve.Entry) string {
	switch {
	case s == ofHidden || s == ofCover && e.Kind == pathrule.Hide:
		return "take it out of Files.Hide, or name what is inside in Files.Read or Files.Write"
	case pathrule.Within(e.Path, "/dev") && e.Path != "":
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
