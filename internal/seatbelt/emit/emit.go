package emit

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// What of each family is named. The wildcard is for the rest of it, and for
// operations that came later.
const (
	reads    = "file-read* file-read-data file-read-metadata file-read-xattr file-map-executable file-clone"
	executes = "process-exec* process-exec"
	writes   = "file-write* file-write-acl file-write-create file-write-data file-write-flags file-write-mode file-write-owner" +
		" file-write-times file-write-unlink file-write-xattr file-link"
	contents = "file-write-acl file-write-create file-write-data file-write-flags file-write-unlink file-write-xattr file-link" // but for mode, owner and times
	hides    = "file-read* file-read-data file-read-xattr file-map-executable file-clone"                                       // but for metadata
	places   = "file-write-create file-write-unlink file-link"                                                                  // what takes a place away, or puts another there
)

// Emit writes the profile. It is pure. An error is an *Error.
func Emit(g Grants) (Emission, error) {
	if err := g.check(); err != nil {
		return Emission{}, err
	}
	w := &writer{grants: g, known: map[string]string{}, counts: map[string]int{}}
	w.base()
	w.root()
	w.devices()
	w.tools()
	w.network()
	if g.AllFiles {
		w.part("files are not bounded")
		w.allow("file* process-exec* process-exec")
		if g.Network.Sockets {
			w.allow("network-outbound", "(remote unix-socket)")
			w.allow("network-bind network-inbound", "(local unix-socket)")
		}
	} else {
		w.files()
		w.anchors()
		w.names()
	}
	w.resolver()
	return Emission{Profile: w.text.String(), Params: w.params}, nil
}

// A writer is a profile in the making.
type writer struct {
	grants Grants
	text   strings.Builder
	params []Param
	known  map[string]string // the parameter of a value
	counts map[string]int
}

// param returns the expression for a value, which is given by -D under a name
// that begins with prefix.
func (w *writer) param(prefix, value string) string {
	key := prefix + "=" + value
	name, ok := w.known[key]
	if !ok {
		name = fmt.Sprintf("%s%d", prefix, w.counts[prefix])
		w.counts[prefix]++
		w.known[key] = name
		w.params = append(w.params, Param{name, value})
	}
	return `(param "` + name + `")`
}

func (w *writer) part(about string) { w.text.WriteString("\n; " + about + "\n") }

func (w *writer) line(s string) { w.text.WriteString(s + "\n") }

func (w *writer) rule(action, operations string, filters []string, after string) {
	w.text.WriteString("(" + action + " " + operations)
	for _, f := range filters {
		w.text.WriteString("\n  " + f)
	}
	w.text.WriteString(after + ")\n")
}

func (w *writer) allow(operations string, filters ...string) {
	w.rule("allow", operations, filters, "")
}

// deny tags the denial, so that it can be found in the system's log.
func (w *writer) deny(operations string, filters ...string) {
	after := ""
	if w.grants.Tag != "" {
		after = ` (with message "` + w.grants.Tag + `")`
		if len(filters) > 0 {
			after = "\n " + after
		}
	}
	w.rule("deny", operations, filters, after)
}

// subpaths are filters for a place and all that lies in it.
func (w *writer) subpaths(p string) []string {
	var out []string
	for _, s := range spellings(p) {
		out = append(out, "(subpath "+w.param("PATH", s)+")")
	}
	return out
}

// literals are filters for a place alone.
func (w *writer) literals(p string) []string {
	var out []string
	for _, s := range spellings(p) {
		out = append(out, "(literal "+w.param("PATH", s)+")")
	}
	return out
}

// protects are filters for a place that may not exist yet.
func (w *writer) protects(p string) []string {
	return append(w.literals(p), w.subpaths(p)...)
}

// files writes the rules about places, a directory before what lies in it.
func (w *writer) files() {
	rules := inTreeOrder(w.grants.Rules)
	if len(rules) > 0 {
		w.part("places, the deeper after the shallower")
	}
	for i, r := range rules {
		if r.Path == "/" && r.Kind != Hide {
			continue // see root
		}
		around := enclosing(rules[:i], r.Path)
		if r.Kind != Hide {
			w.way(rules[:i], r.Path)
		}
		switch r.Kind {
		case Read:
			w.allow(reads+" "+executes, w.subpaths(r.Path)...)
			if around == Write {
				w.deny(writes, w.protects(r.Path)...)
				w.socketsDenied(r.Path, "network-bind network-inbound")
			}
			w.sockets(r.Path, false)
		case Write:
			w.allow(reads+" "+executes+" "+writes, w.subpaths(r.Path)...)
			w.sockets(r.Path, true)
		case Device:
			w.allow("file-read* file-read-data file-write-data file-ioctl", w.literals(r.Path)...)
		case Socket:
			w.socket(r.Path)
		case Hide:
			w.deny(reads+" "+executes+" "+writes, w.protects(r.Path)...)
			w.socketsDenied(r.Path, "network-bind network-inbound network-outbound")
		}
	}
}

// way lets the directories be looked at that lead to p through what is hidden:
// realpath asks for each of them, and so does every program that looks for its
// libraries. Nothing else in them is shown.
func (w *writer) way(rules []Rule, p string) {
	var filters []string
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if enclosing(rules, dir+"/x") == Hide {
			filters = append(filters, w.literals(dir)...)
		}
	}
	if len(filters) > 0 {
		w.allow("file-read-metadata", filters...)
	}
}

// root writes a rule about the whole tree, of which /dev is no part: the user's
// other terminals are in it.
func (w *writer) root() {
	for _, r := range inTreeOrder(w.grants.Rules) {
		if r.Path != "/" || r.Kind == Hide {
			continue
		}
		operations := reads + " " + executes
		if r.Kind == Write {
			operations += " " + writes
		}
		w.part("the whole tree, and not its devices")
		w.allow(operations, w.subpaths("/")...)
		w.sockets("/", r.Kind == Write)
		w.deny(hides+" "+executes+" "+writes, `(subpath "/dev")`)
		w.socketsDenied("/dev", "network-bind network-inbound network-outbound")
	}
}

// sockets grants the unix sockets of a place: a connection is no matter of files
// here.
func (w *writer) sockets(p string, bind bool) {
	if !w.grants.Network.Sockets {
		return
	}
	for _, s := range w.subpaths(p) {
		w.allow("network-outbound", "(remote unix-socket "+s+")")
		if bind {
			w.allow("network-bind network-inbound", "(local unix-socket "+s+")")
		}
	}
}

// socket grants one unix socket, whatever the place around it is. The name of a
// socket within the filter is path-literal by custom.
func (w *writer) socket(p string) {
	w.deny(hides+" "+executes+" "+writes, w.protects(p)...)
	w.allow("file-read-metadata", w.literals(p)...)
	w.socketsDenied(p, "network-bind network-inbound network-outbound")
	if !w.grants.Network.Sockets {
		return
	}
	for _, s := range spellings(p) {
		w.allow("network-outbound", "(remote unix-socket (path-literal "+w.param("PATH", s)+"))")
	}
}

func (w *writer) socketsDenied(p, operations string) {
	if !w.grants.Network.Sockets {
		return
	}
	for _, op := range strings.Fields(operations) {
		end := "local"
		if op == "network-outbound" {
			end = "remote"
		}
		for _, s := range w.subpaths(p) {
			w.deny(op, "("+end+" unix-socket "+s+")")
		}
	}
}

// enclosing is the kind of the deepest rule around p; 0: none.
func enclosing(rules []Rule, p string) Kind {
	for _, r := range slices.Backward(rules) {
		if within(p, r.Path) && p != r.Path {
			return r.Kind
		}
	}
	return 0
}

// anchors keeps the places of rules, and the directories that lead to them, where
// they are: moving one away would move a rule's file out of the rule.
func (w *writer) anchors() {
	rules := inTreeOrder(w.grants.Rules)
	var fixed []string
	for i, r := range rules {
		if r.Kind == Write {
			fixed = append(fixed, r.Path)
		}
		if enclosing(rules[:i], r.Path) == 0 {
			continue
		}
		fixed = append(fixed, r.Path)
		for dir := path.Dir(r.Path); dir != "/"; dir = path.Dir(dir) {
			fixed = append(fixed, dir)
			if slices.ContainsFunc(rules, func(o Rule) bool { return o.Path == dir }) {
				break
			}
		}
	}
	slices.Sort(fixed)
	fixed = slices.Compact(fixed)
	if len(fixed) > 0 {
		w.part("the places of rules, and what leads to them, stay where they are")
		var filters []string
		for _, p := range fixed {
			filters = append(filters, w.literals(p)...)
		}
		w.deny(places, filters...)
		w.bindsDenied(filters)
	}
}

// names writes what holds at every depth, hidden names first.
func (w *writer) names() {
	if len(w.grants.Names) == 0 || len(w.grants.Roots) == 0 {
		return
	}
	w.part("names at every depth, whether or not they exist")
	for _, kind := range []NameKind{Hidden, Directory, File, Whole} {
		for _, n := range w.grants.Names {
			if n.Kind == kind {
				w.name(n)
			}
		}
	}
}

func (w *writer) name(n Name) {
	parts := strings.Split(n.Path, "/")
	if n.Kind == Hidden {
		w.deny(hides+" "+contents, w.regexes(parts, beneath)...)
		w.bindsDenied(w.regexes(parts, beneath))
		return
	}
	ways, deep := leading(parts)
	var onTheWay []string
	for _, way := range ways {
		onTheWay = append(onTheWay, w.regexes(way, exact)...)
	}
	if deep != nil {
		onTheWay = append(onTheWay, w.regexes(deep, exact)...)
	}
	if len(onTheWay) > 0 {
		w.deny("file-write-unlink", onTheWay...)
		for _, f := range onTheWay {
			w.deny("file-write-create", "(require-all "+f+" (require-not (vnode-type REGULAR-FILE)))")
		}
	}
	switch n.Kind {
	case Whole:
		w.deny(writes, w.regexes(parts, beneath)...)
		w.bindsDenied(w.regexes(parts, beneath))
	case File, Directory:
		w.deny(contents, w.regexes(parts, exact)...)
		w.bindsDenied(w.regexes(parts, exact))
	}
}

func (w *writer) bindsDenied(filters []string) {
	if !w.grants.Network.Sockets {
		return
	}
	for _, f := range filters {
		w.deny("network-bind", "(local unix-socket "+f+")")
	}
}

// regexes are filters for a name in every root.
func (w *writer) regexes(parts []string, tail string) []string {
	var out []string
	for _, root := range w.roots() {
		for _, re := range below(root, parts, tail) {
			out = append(out, "(regex "+w.param("NAME", re)+")")
		}
	}
	return out
}

// roots returns the outermost roots, in both spellings.
func (w *writer) roots() []string {
	var real []string
	for _, r := range w.grants.Roots {
		real = append(real, spellings(r)[0])
	}
	slices.Sort(real)
	var out []string
	for _, r := range real {
		if !slices.ContainsFunc(out, func(o string) bool { return within(r, o) }) {
			out = append(out, r)
		}
	}
	for _, r := range slices.Clone(out) {
		if other := spellings(r)[1:]; len(other) > 0 {
			out = append(out, other...)
		}
	}
	return out
}
