package verdict

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

// An Evaluator answers queries about a policy.
type Evaluator struct {
	Policy  policy.Policy
	Entries map[string]resolve.Entry // by path; without sockets in trees that are shown anyway
	Fields  map[string]string        // by path: where the entry comes from
	above   map[string]string        // directories on the way to an entry, with the path of one such
	Roots   []string                 // of Write, sorted as the tree is
	Names   *nameRules
}

// New returns the evaluator of a policy whose paths are taken to exist and to be canonical.
func New(p policy.Policy) (*Evaluator, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m := &Evaluator{Policy: p, Entries: map[string]resolve.Entry{}, Fields: map[string]string{}}
	if p.Root != nil {
		return m, nil
	}
	r := resolve.New()
	for _, u := range RulesOf(p.Files, p.Network.Unix...) {
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
		m.Entries[e.Path], m.Fields[e.Path] = e, u.List.Name(u.Index)
	}
	m.prepare()
	return m, nil
}

// RulesOf returns all rules about paths, as they are written.
func RulesOf(f policy.Files, sockets ...string) []resolve.Rule {
	var out []resolve.Rule
	for _, list := range f.Lists(sockets...) {
		for i, p := range list.Paths {
			dir := !pathrule.Within(p, "/dev") && list.Kind != pathrule.Socket // /dev has only device files to name
			out = append(out, resolve.Rule{List: list, Index: i, Asked: p, Entry: resolve.Entry{Path: p, Kind: list.Kind, Dir: dir}})
		}
	}
	for i, m := range f.Make {
		out = append(out, resolve.Rule{List: pathrule.List{Field: "Files.Make"}, Index: i, Asked: m.Path, Absent: true, Entry: resolve.Entry{Path: m.Path, Kind: pathrule.Make, File: m}})
	}
	return out
}

// prepare fills in what follows from the entries.
func (m *Evaluator) prepare() {
	m.above = map[string]string{}
	for p, e := range m.Entries {
		for dir := path.Dir(p); ; dir = path.Dir(dir) {
			if first, ok := m.above[dir]; !ok || pathrule.TreeOrder(p, first) < 0 {
				m.above[dir] = p
			}
			if dir == "/" {
				break
			}
		}
		if e.Kind == pathrule.Write && e.Dir {
			m.Roots = append(m.Roots, p)
		}
	}
	slices.SortFunc(m.Roots, pathrule.TreeOrder)
	m.Names = newNameRules(m.Policy.Files)
}

// A pathState is what the tool may do with a path.
type pathState uint8

const (
	stateAbsent      pathState = iota // nothing is there
	statePassage                      // a directory on the way to something that is
	stateMasked                       // hidden: an empty thing that cannot be opened
	stateBelowMasked                  // below what is hidden
	stateReadOnly                     // can be read and executed
	stateGenerated                    // a file of Make, which cannot be changed
	stateWritable                     // can be changed
	stateDevice                       // a device file: read and written, and not changed
	stateProc                         // the sandbox's own /proc
	stateTerminal                     // /dev/pts and what is in it
	stateSocket                       // a socket of the host's that can be connected to
)

// lookup returns the state of p and the entry that decides it; the entry's path is "" if there is
// none.
func (m *Evaluator) lookup(p string) (pathState, resolve.Entry) {
	for at := p; ; at = path.Dir(at) {
		if e, ok := m.Entries[at]; ok {
			s := m.inEntry(e, p)
			if !e.Dir && p != at && (e.Kind != pathrule.Make || s != stateWritable) { // a file which cannot give way to a directory
				return stateAbsent, resolve.Entry{}
			}
			return s, e
		}
		if s, ok := m.builtIn(at, p); ok {
			if e := m.Entries["/"]; at == "/dev" && e.Kind == pathrule.Write && e.Path != "" {
				s = stateWritable // it is an empty directory with a few devices
			}
			return s, resolve.Entry{}
		}
		if at == "/" {
			break
		}
	}
	if _, ok := m.above[p]; ok || p == "/" {
		return statePassage, resolve.Entry{}
	}
	return stateAbsent, resolve.Entry{}
}

// ReadOnly reports whether the tool can read and execute p, and not change it.
func (m *Evaluator) ReadOnly(p string) bool {
	s, _ := m.lookup(p)
	return s == stateReadOnly
}

// inEntry returns the state of p, which lies in e.
func (m *Evaluator) inEntry(e resolve.Entry, p string) pathState {
	switch e.Kind {
	case pathrule.Read:
		if pathrule.Within(e.Path, "/dev") {
			return stateMasked // devices do not work there: name them in Write
		}
		return stateReadOnly
	case pathrule.Socket:
		return stateSocket
	case pathrule.Make:
		if s, around := m.lookup(path.Dir(e.Path)); s == stateWritable && around.Kind == pathrule.Private {
			return stateWritable
		}
		return stateGenerated
	case pathrule.Hide:
		if p == e.Path {
			return stateMasked
		}
		if _, leads := m.above[p]; leads {
			return statePassage
		}
		return stateBelowMasked
	}
	return stateWritable
}

// builtIn returns the state of p by at, a path that every sandbox provides itself, such as /proc. ok is
// false if at is no such path.
func (m *Evaluator) builtIn(at, p string) (s pathState, ok bool) {
	switch {
	case at == "/proc" && pathrule.WithinAny(p, hiddenProc) && !slices.Contains(m.Policy.Open, policy.BoundProcesses):
		return stateMasked, true
	case at == "/proc":
		return stateProc, true
	case slices.Contains(resolve.OwnDevices, at) && at == p:
		return stateDevice, true
	case slices.Contains(resolve.OwnDevices, at):
		return stateAbsent, true
	case at == "/dev/shm", at == "/dev/mqueue":
		return stateWritable, true
	case at == "/dev/pts":
		return stateTerminal, true
	case p == "/dev":
		return statePassage, true
	}
	return stateAbsent, at == "/dev"
}

// hiddenProc lists the files of the sandbox's /proc that describe the machine: they cannot be read.
var hiddenProc = func() []string {
	var list []string
	for _, name := range plan.HiddenProc {
		list = append(list, "/proc/"+name)
	}
	return list
}()

// allowsFile answers for accesses to paths.
func (m *Evaluator) allowsFile(a Access) (bool, Reason) {
	paths := []string{a.Path}
	if a.Op == OpRename || a.Op == OpLink {
		paths = append(paths, a.To)
	}
	for _, p := range paths {
		if e := checkPathText(p); e != "" {
			return false, Reason{Bound: policy.BoundFiles, Why: "the path " + strconv.Quote(p) + " " + e, Remedy: "write it absolute and clean"}
		}
		if p == "/" && slices.Contains([]Op{OpCreate, OpRemove, OpRename, OpLink, OpSymlink, OpBind}, a.Op) {
			return false, Reason{Bound: policy.BoundFiles, Why: "the root directory has no name that could come or go"}
		}
	}
	if i := slices.Index(m.Policy.Open, policy.BoundFiles); i >= 0 && !m.inPrivateProc(paths) {
		return true, Reason{Bound: policy.BoundFiles, Field: errtext.Indexed("Open", i), Why: "the policy does not bound files"}
	}
	if m.Policy.Root != nil {
		return false, Reason{Bound: policy.BoundFiles, Field: "Root", Why: "a layout's entries say what exists, and are not asked here", Remedy: "see Sandbox.Explain"}
	}
	if ok, r := m.byPath(a); !ok {
		return false, r
	}
	return m.byName(a)
}

// inPrivateProc reports whether a path lies in the /proc that the sandbox mounts, also with the harness's root around it.
func (m *Evaluator) inPrivateProc(paths []string) bool {
	if slices.Contains(m.Policy.Open, policy.BoundProcesses) {
		return false
	}
	return slices.ContainsFunc(paths, func(p string) bool { return pathrule.Within(p, "/proc") })
}

// checkPathText says what is wrong with an access's path.
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

// byPath asks the rules about paths.
func (m *Evaluator) byPath(a Access) (bool, Reason) {
	s, e := m.lookup(a.Path)
	if s == stateProc && a.Op == OpWrite {
		return m.reason(m.writesProc(), a.Path, s, e, a.Op)
	}
	switch a.Op {
	case OpRead, OpList, OpStat, OpWrite, OpExecute, OpConnect:
		return m.reason(visible(s, a, e), a.Path, s, e, a.Op)
	case OpChmod, OpSetXattr:
		return m.reason(s == stateWritable || a.Path == "/dev", a.Path, s, e, a.Op)
	case OpCreate, OpSymlink, OpBind:
		return m.changes(a.Path, a.Op, nameCreated)
	case OpRemove:
		return m.changes(a.Path, a.Op, nameRemoved)
	case OpLink:
		if _, dir := m.above[a.Path]; s != stateWritable || m.isMount(a.Path) || dir {
			return m.reason(false, a.Path, s, e, a.Op)
		}
	case OpRename:
		if ok, r := m.changes(a.Path, a.Op, nameMoved); !ok {
			return false, r
		}
	}
	return m.changes(a.To, a.Op, nameRemoved) // what was there is replaced
}

// A change says what becomes of a name.
type change uint8

const (
	nameCreated change = iota
	nameRemoved
	nameMoved
)

// writesProc: what of /proc is a process's can be written where all files can.
func (m *Evaluator) writesProc() bool {
	e, ok := m.Entries["/"]
	return (ok && e.Kind == pathrule.Write || slices.Contains(m.Policy.Open, policy.BoundFiles)) && !slices.Contains(m.Policy.Open, policy.BoundProcesses)
}

// visible reports whether what is there can be read, listed, seen, written,
// executed or connected to.
func visible(s pathState, a Access, e resolve.Entry) bool {
	switch a.Op {
	case OpStat:
		return s != stateAbsent && s != stateBelowMasked
	case OpList:
		return s == statePassage || (s == stateReadOnly || s == stateWritable) && !pathrule.Within(e.Path, "/dev") || s == stateProc || s == stateTerminal
	case OpRead:
		return s == stateReadOnly || s == stateGenerated || s == stateWritable || s == stateDevice || s == stateProc || s == stateTerminal && a.Path != "/dev/pts"
	case OpWrite:
		return s == stateWritable || s == stateDevice || s == stateTerminal && a.Path != "/dev/pts"
	case OpExecute:
		return (s == stateReadOnly || s == stateWritable) && !pathrule.Within(e.Path, "/dev") || s == stateGenerated && e.File.Mode.Perm()&0o111 != 0
	}
	// OpConnect: a socket of a shown tree, or one that is granted itself.
	return (s == stateReadOnly || s == stateWritable) && !pathrule.Within(e.Path, "/dev") || s == stateSocket
}

// changes says whether the name p can be made, or taken away.
//
// A directory in which a rule holds further down is not empty. Below Write it
// cannot be moved either: a tool could put a decoy in its place, for the next run
// to hold.
func (m *Evaluator) changes(p string, d Op, c change) (bool, Reason) {
	s, e := m.lookup(p)
	below, holds := m.above[p]
	switch {
	case s != stateWritable:
		return m.reason(false, p, s, e, d)
	case m.isMount(p):
		return false, Reason{Bound: policy.BoundFiles, Field: m.Fields[p], Why: p + " is where this rule holds: it stays in its place"}
	case holds && (c != nameMoved || e.Kind == pathrule.Write):
		return false, Reason{Bound: policy.BoundFiles, Field: m.Fields[below], Why: p + " leads to " + below + ", where this rule holds: it stays in its place"}
	}
	return m.reason(true, p, s, e, d)
}

// isMount reports whether an entry is at p that cannot be moved.
func (m *Evaluator) isMount(p string) bool {
	e, ok := m.Entries[p]
	return ok && e.Kind != pathrule.Make || p == "/dev" || p == "/dev/shm" || p == "/dev/mqueue"
}

// reason returns an answer about p with its sentence.
func (m *Evaluator) reason(ok bool, p string, s pathState, e resolve.Entry, d Op) (bool, Reason) {
	r := Reason{Bound: policy.BoundFiles, Field: m.Fields[e.Path]}
	r.Why = cmp.Or(stateWords[s], "") + ": " + p
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

var stateWords = [...]string{
	stateAbsent: "no rule shows it", statePassage: "a directory that leads to what is shown", stateDevice: "a device file of every sandbox", stateProc: "the sandbox has a /proc of its own, to read",
	stateTerminal: "the sandbox has terminals of its own", stateWritable: "a directory of the sandbox's own", stateMasked: "the sandbox does not have it", stateReadOnly: "", stateGenerated: "", stateBelowMasked: "", stateSocket: "",
}

var kindWords = [...]string{
	pathrule.Read: "shown to read", pathrule.Write: "shown to read and write", pathrule.CopyOnWrite: "what is changed there is the run's own copy", pathrule.Private: "a directory of the run's own, empty at its start",
	pathrule.Make: "a file that is made inside", pathrule.Hide: "hidden",
	pathrule.Socket: "a socket that may be connected to",
}

func remedyFor(d Op, s pathState, e resolve.Entry) string {
	switch {
	case s == stateBelowMasked || s == stateMasked && e.Kind == pathrule.Hide:
		return "take it out of Files.Hide, or name what is inside in Files.Read or Files.Write"
	case pathrule.Within(e.Path, "/dev") && e.Path != "":
		return "name the device in Files.Write"
	case s == stateProc || s == stateDevice || s == stateTerminal || s == stateMasked:
		return ""
	case s == stateGenerated:
		return "put the file in a Private directory"
	case d == OpRead || d == OpList || d == OpStat || d == OpExecute || d == OpConnect:
		return "name it, or a directory around it, in Files.Read"
	}
	return "name it, or a directory around it, in Files.Write"
}
