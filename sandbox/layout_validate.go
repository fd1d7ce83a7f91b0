package sandbox

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const (
	maxHostname   = 64       // HOST_NAME_MAX
	maxLayoutData = 64 << 20 // bytes of one entry: they travel in the plan
	maxLayers     = 500      // OVL_MAX_STACK of fs/overlayfs
	maxID         = 1<<31 - 1
)

// validateLayout is everything that can be said of a layout, and of what goes
// with one, without looking at the host.
func (p Policy) validateLayout() error {
	if p.Layout == nil {
		return p.refuseWithoutLayout()
	}
	if f := p.Files; len(f.Read)+len(f.Write)+len(f.Hide)+len(f.Private)+len(f.CopyOnWrite)+len(f.Worktrees)+len(f.Make) > 0 || f.PrivateBytes > 0 {
		return &PolicyError{Field: "Files", Problem: "cannot go with a Layout, which is the tool's whole root", Remedy: "write its rules as entries; of Files only Protect and HideNames count"}
	}
	if len(p.Layout) > maxRules {
		return &PolicyError{Field: "Layout", Value: strconv.Itoa(len(p.Layout)) + " entries", Problem: "too many"}
	}
	for i, e := range p.Layout {
		if bad := checkEntry(e); bad != nil {
			bad.Field = indexed("Layout", i) + bad.Field
			return bad
		}
	}
	for i, l := range p.Locks {
		if bad := checkText(l); bad != nil {
			bad.Field = indexed("Locks", i)
			return bad
		}
	}
	for i, c := range p.Privileges.Capabilities {
		if c > 63 {
			return &PolicyError{Field: indexed("Privileges.Capabilities", i), Value: c.String(), Problem: "no such capability"}
		}
	}
	return p.validateNamespaces()
}

func (p Policy) refuseWithoutLayout() error {
	for _, f := range [...]struct {
		field string
		set   bool
	}{
		{"Namespaces", p.Namespaces != Namespaces{}}, {"Privileges", p.Privileges.All || len(p.Privileges.Capabilities) > 0},
		{"Locks", len(p.Locks) > 0}, {"Nest", p.Nest},
	} {
		if f.set {
			return &PolicyError{Field: f.field, Problem: "applies only with Policy.Layout, which is not set"}
		}
	}
	return nil
}

func (p Policy) validateNamespaces() error {
	n := p.Namespaces
	bad := func(field, problem string) error {
		return &PolicyError{Field: "Namespaces." + field, Problem: problem}
	}
	ownUser := !n.ShareUser && n.User == nil
	switch {
	case n.ShareUser && n.User != nil:
		return bad("User", "ShareUser says to join no user namespace")
	case n.As != nil && n.ShareUser:
		return bad("As", "takes a user namespace, and ShareUser has none")
	case n.As != nil && (n.As.UID < 0 || n.As.UID > maxID || n.As.GID < 0 || n.As.GID > maxID):
		return bad("As", "has an id that is not between 0 and 2147483647")
	case n.MappedOutside && !ownUser:
		return bad("MappedOutside", "takes a user namespace of the sandbox's own")
	case n.MappedOutside && n.NoUsers:
		return bad("NoUsers", "needs a second user namespace, whose ids cannot be mapped from outside in time")
	case n.NoUsers && !ownUser:
		return bad("NoUsers", "takes a user namespace of the sandbox's own")
	case n.NoUsers && n.OneLevel:
		return bad("NoUsers", "takes a second user namespace, and OneLevel has none")
	case n.OneLevel && p.hasDev() && ownUser && !n.MappedOutside && (n.As == nil || *n.As != IDs{}):
		return bad("OneLevel", "a Dev takes the second user namespace, unless As is user 0 and group 0")
	case n.Hostname != "" && n.ShareUTS:
		return bad("Hostname", "would be the harness's too, with ShareUTS")
	case len(n.Hostname) > maxHostname || strings.ContainsRune(n.Hostname, 0):
		return bad("Hostname", "is longer than 64 bytes, or has a NUL byte")
	case n.AsPID1 && (n.SharePID || n.PID != nil):
		return bad("AsPID1", "takes a new pid namespace below the harness's")
	case n.AsPID1 && len(p.Locks) > 0:
		return bad("AsPID1", "leaves no process inside that could hold Locks")
	case n.AsPID1 && p.guards():
		return bad("AsPID1", "leaves no process inside that could protect names: set Files.Protect.Off")
	}
	return nil
}

func (p Policy) hasDev() bool {
	for _, e := range p.Layout {
		if _, ok := e.(Dev); ok {
			return true
		}
	}
	return false
}

// guards reports whether names are protected below something writable.
func (p Policy) guards() bool {
	if len(p.Files.protectedPatterns())+len(p.Files.HideNames) == 0 {
		return false
	}
	for _, e := range p.Layout {
		if b, ok := e.(Bind); ok && b.Write {
			return true
		}
	}
	return false
}

// checkEntry judges one entry. The fields of its errors are completed by the
// caller: ".At".
func checkEntry(e Entry) *PolicyError {
	switch e := e.(type) {
	case Bind:
		if e.File == nil {
			return either(sourceField("Source", e.Source), atField(e.At))
		}
		if e.Source != "" || e.Optional {
			return &PolicyError{Field: ".File", Problem: "takes the place of Source, and is always there"}
		}
		return atField(e.At)
	case Tmpfs:
		if e.Bytes > 1<<63-1 {
			return &PolicyError{Field: ".Bytes", Value: strconv.FormatUint(e.Bytes, 10), Problem: "more than any machine has"}
		}
		return either(atField(e.At), modeField(e.Mode))
	case Dir:
		return either(atField(e.At), modeField(e.Mode))
	case File:
		return either(belowRoot(e.Path, "Path"), either(modeField(e.Mode), dataField(e.Data)))
	case DataBind:
		return either(belowRoot(e.At, "At"), either(modeField(e.Mode), dataField(e.Data)))
	case Symlink:
		if e.Target == "" || strings.ContainsRune(e.Target, 0) || len(e.Target) > maxPath {
			return &PolicyError{Field: ".Target", Value: e.Target, Problem: "is empty, has a NUL byte, or is longer than 4095 bytes"}
		}
		return belowRoot(e.At, "At")
	case Chmod:
		return either(atField(e.At), modeField(e.Mode))
	case RemountReadOnly:
		return atField(e.At)
	case Proc:
		return belowRoot(e.At, "At")
	case Dev:
		if e.Console != "" {
			return either(sourceField("Console", e.Console), atField(e.At))
		}
		return atField(e.At)
	case Mqueue:
		return atField(e.At)
	case Overlay:
		return either(either(layersField(e.Layers, 1), atField(e.At)), either(sourceField("Upper", e.Upper), sourceField("Work", e.Work)))
	case TmpOverlay:
		return either(layersField(e.Layers, 1), atField(e.At))
	case ReadOnlyOverlay:
		return either(layersField(e.Layers, 2), atField(e.At))
	}
	return &PolicyError{Problem: "is nil"}
}

func either(a, b *PolicyError) *PolicyError {
	if a != nil {
		return a
	}
	return b
}

func atField(p string) *PolicyError { return sourceField("At", p) }

func sourceField(field, p string) *PolicyError {
	bad := checkText(p)
	if bad != nil {
		bad.Field = "." + field
	}
	return bad
}

func belowRoot(p, field string) *PolicyError {
	if p == "/" {
		return &PolicyError{Field: "." + field, Value: p, Problem: "is the root"}
	}
	return sourceField(field, p)
}

// checkText judges the text of a path.
func checkText(p string) *PolicyError {
	bad := func(problem, remedy string) *PolicyError {
		return &PolicyError{Value: p, Problem: problem, Remedy: remedy}
	}
	switch {
	case p == "":
		return bad("is empty", "write an absolute path")
	case strings.ContainsRune(p, 0):
		return bad("has a NUL byte", "")
	case p[0] != '/':
		return bad("is not absolute", "make it so with filepath.Abs")
	case path.Clean(p) != p:
		return bad("is not clean", "write "+strconv.Quote(shorten(path.Clean(p))))
	case len(p) > maxPath:
		return bad("is longer than 4095 bytes", "")
	}
	for c := range strings.SplitSeq(p, "/") {
		if len(c) > maxName {
			return bad("has a name longer than 255 bytes", "")
		}
	}
	return nil
}

const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func modeField(m fs.FileMode) *PolicyError {
	if m != NoAccess && m&^modeBits != 0 {
		return &PolicyError{Field: ".Mode", Value: m.String(), Problem: "has more than permission bits"}
	}
	return nil
}

func dataField(data string) *PolicyError {
	if len(data) > maxLayoutData {
		return &PolicyError{Field: ".Data", Value: strconv.Itoa(len(data)) + " bytes", Problem: "too large", Remedy: "at most 64 MiB; bind a file of the host instead"}
	}
	return nil
}

func layersField(layers []string, least int) *PolicyError {
	if len(layers) < least || len(layers) > maxLayers {
		return &PolicyError{Field: ".Layers", Value: strconv.Itoa(len(layers)) + " layers", Problem: "not between " + strconv.Itoa(least) + " and 500"}
	}
	for i, l := range layers {
		if bad := sourceField(indexed("Layers", i), l); bad != nil {
			return bad
		}
	}
	return nil
}

// modeOf is the mode as the kernel counts it.
func modeOf(m, standard fs.FileMode) uint32 {
	switch m {
	case 0:
		m = standard
	case NoAccess:
		m = 0
	}
	bits := uint32(m.Perm())
	for _, b := range [...]struct {
		mode fs.FileMode
		bit  uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&b.mode != 0 {
			bits |= b.bit
		}
	}
	return bits
}
