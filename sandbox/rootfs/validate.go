package rootfs

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

const (
	maxHostname   = 64       // HOST_NAME_MAX
	maxLayoutData = 64 << 20 // bytes of one entry: they travel in the plan
	maxLayers     = 500      // OVL_MAX_STACK of fs/overlayfs
	maxID         = 1<<31 - 1
)

// A FieldError says which field of a [Layout] cannot be, why, and what would do
// instead. Field is relative to the layout: "Entries[3].At".
type FieldError struct {
	Field, Value, Problem, Remedy string
}

// Error returns all of it in one line.
func (e *FieldError) Error() string {
	s := "rootfs: " + e.Field
	if e.Value != "" {
		s += " = " + strconv.Quote(errtext.Shorten(e.Value))
	}
	s += ": " + e.Problem
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

// Validate is everything that can be said of a layout without looking at the host.
// Its error is a [*FieldError] for the first thing that is wrong.
func (l Layout) Validate() error {
	if bad := l.validate(); bad != nil {
		return bad
	}
	return nil
}

func (l Layout) validate() *FieldError {
	if len(l.Entries) > pathrule.MaxRules {
		return &FieldError{Field: "Entries", Value: strconv.Itoa(len(l.Entries)) + " entries", Problem: "too many"}
	}
	for i, e := range l.Entries {
		if bad := checkEntry(e); bad != nil {
			bad.Field = errtext.Indexed("Entries", i) + bad.Field
			return bad
		}
	}
	for i, p := range l.Locks {
		if bad := checkText(p); bad != nil {
			bad.Field = errtext.Indexed("Locks", i)
			return bad
		}
	}
	for i, c := range l.Privileges.Capabilities {
		if c > 63 {
			return &FieldError{Field: errtext.Indexed("Privileges.Capabilities", i), Value: c.String(), Problem: "no such capability"}
		}
	}
	return l.validateNamespaces()
}

func (l Layout) validateNamespaces() *FieldError {
	n := l.Namespaces
	bad := func(field, problem string) *FieldError {
		return &FieldError{Field: "Namespaces." + field, Problem: problem}
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
	case n.OneLevel && l.hasDev() && ownUser && !n.MappedOutside && (n.As == nil || *n.As != IDs{}):
		return bad("OneLevel", "a Dev takes the second user namespace, unless As is user 0 and group 0")
	case n.Hostname != "" && n.ShareUTS:
		return bad("Hostname", "would be the harness's too, with ShareUTS")
	case len(n.Hostname) > maxHostname || strings.ContainsRune(n.Hostname, 0):
		return bad("Hostname", "is longer than 64 bytes, or has a NUL byte")
	case n.AsPID1 && (n.SharePID || n.PID != nil):
		return bad("AsPID1", "takes a new pid namespace below the harness's")
	case n.AsPID1 && len(l.Locks) > 0:
		return bad("AsPID1", "leaves no process inside that could hold Locks")
	}
	return nil
}

func (l Layout) hasDev() bool {
	for _, e := range l.Entries {
		if _, ok := e.(Dev); ok {
			return true
		}
	}
	return false
}

// checkEntry judges one entry. The fields of its errors are completed by the
// caller: ".At".
func checkEntry(e Entry) *FieldError {
	switch e := e.(type) {
	case Bind:
		if e.File == nil {
			return either(sourceField("Source", e.Source), atField(e.At))
		}
		if e.Source != "" || e.Optional {
			return &FieldError{Field: ".File", Problem: "takes the place of Source, and is always there"}
		}
		return atField(e.At)
	case Tmpfs:
		if e.Bytes > 1<<63-1 {
			return &FieldError{Field: ".Bytes", Value: strconv.FormatUint(e.Bytes, 10), Problem: "more than any machine has"}
		}
		return either(atField(e.At), modeField(e.Mode))
	case Dir:
		return either(atField(e.At), modeField(e.Mode))
	case File:
		return either(belowRoot(e.At, "At"), either(modeField(e.Mode), dataField(e.Data)))
	case DataBind:
		return either(belowRoot(e.At, "At"), either(modeField(e.Mode), dataField(e.Data)))
	case Symlink:
		if e.Target == "" || strings.ContainsRune(e.Target, 0) || len(e.Target) > pathrule.MaxPath {
			return &FieldError{Field: ".Target", Value: e.Target, Problem: "is empty, has a NUL byte, or is longer than 4095 bytes"}
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
	return &FieldError{Problem: "is nil"}
}

func either(a, b *FieldError) *FieldError {
	if a != nil {
		return a
	}
	return b
}

func atField(p string) *FieldError { return sourceField("At", p) }

func sourceField(field, p string) *FieldError {
	bad := checkText(p)
	if bad != nil {
		bad.Field = "." + field
	}
	return bad
}

func belowRoot(p, field string) *FieldError {
	if p == "/" {
		return &FieldError{Field: "." + field, Value: p, Problem: "is the root"}
	}
	return sourceField(field, p)
}

// checkText judges the text of a path.
func checkText(p string) *FieldError {
	bad := func(problem, remedy string) *FieldError {
		return &FieldError{Value: p, Problem: problem, Remedy: remedy}
	}
	switch {
	case p == "":
		return bad("is empty", "write an absolute path")
	case strings.ContainsRune(p, 0):
		return bad("has a NUL byte", "")
	case p[0] != '/':
		return bad("is not absolute", "make it so with filepath.Abs")
	case path.Clean(p) != p:
		return bad("is not clean", "write "+strconv.Quote(errtext.Shorten(path.Clean(p))))
	case len(p) > pathrule.MaxPath:
		return bad("is longer than 4095 bytes", "")
	}
	for c := range strings.SplitSeq(p, "/") {
		if len(c) > pathrule.MaxName {
			return bad("has a name longer than 255 bytes", "")
		}
	}
	return nil
}

const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func modeField(m fs.FileMode) *FieldError {
	if m != NoAccess && m&^modeBits != 0 {
		return &FieldError{Field: ".Mode", Value: m.String(), Problem: "has more than permission bits"}
	}
	return nil
}

func dataField(data string) *FieldError {
	if len(data) > maxLayoutData {
		return &FieldError{Field: ".Data", Value: strconv.Itoa(len(data)) + " bytes", Problem: "too large", Remedy: "at most 64 MiB; bind a file of the host instead"}
	}
	return nil
}

func layersField(layers []string, least int) *FieldError {
	if len(layers) < least || len(layers) > maxLayers {
		return &FieldError{Field: ".Layers", Value: strconv.Itoa(len(layers)) + " layers", Problem: "not between " + strconv.Itoa(least) + " and 500"}
	}
	for i, l := range layers {
		if bad := sourceField(errtext.Indexed("Layers", i), l); bad != nil {
			return bad
		}
	}
	return nil
}

// ModeBits is the mode as the kernel counts it.
func ModeBits(m, standard fs.FileMode) uint32 {
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
