package landlock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
)

// Ruleset is what a domain may do. Its zero value handles every right and every scope this package knows and
// grants nothing: a thread restricted with it can open, bind, connect and signal nothing that Landlock knows of.
//
// A kernel refuses a ruleset that handles a right it does not know; [Downgrade] takes those out and says which.
type Ruleset struct {
	// UnhandledFS are file system rights that this ruleset leaves as they are. Zero: none, all are handled.
	// FSRefer here frees nothing as long as another file system right is handled (landlock(7)): to leave renames and links
	// between directories as they are, grant FSRefer on "/".
	UnhandledFS AccessFS `json:"unhandled_fs,omitempty"`
	// UnhandledNet are network rights that this ruleset leaves as they are. Zero: none.
	UnhandledNet AccessNet `json:"unhandled_net,omitempty"`
	// Unscoped are scopes that this ruleset leaves open. Zero: none, all are closed.
	Unscoped Scope `json:"unscoped,omitempty"`
	// Paths grant file system rights beneath paths. Zero: none. Order and repetition do not matter: rights add up.
	Paths []PathRule `json:"paths,omitempty"`
	// Ports grant network rights on ports. Zero: none.
	Ports []PortRule `json:"ports,omitempty"`
}

// PathRule grants rights on a path and, if it is a directory, on all beneath it, mounts included.
type PathRule struct {
	// Path is absolute. Symbolic links in it are followed once, when the ruleset is built.
	Path string `json:"path"`
	// Access is what is granted; not zero. Rights that the ruleset does not handle change nothing. On a path that is
	// not a directory the rights of directories are left out (see [AccessFS.ForFile]).
	Access AccessFS `json:"access"`
}

// String prints the rule: "/usr: execute|read_file".
func (p PathRule) String() string { return p.Path + ": " + p.Access.String() }

// PortRule grants rights on a port, whatever the address.
type PortRule struct {
	// Port is in host order. 0 with a bind right is the ephemeral range, not every port.
	Port uint16 `json:"port"`
	// Access is what is granted; not zero.
	Access AccessNet `json:"access"`
}

// String prints the rule: "port 443: connect_tcp".
func (p PortRule) String() string { return fmt.Sprintf("port %d: %v", p.Port, p.Access) }

// ScopesOnly returns a ruleset that closes every scope and changes nothing else: the layer to put on a process so
// that it can neither signal nor ptrace those of the domain around it. It handles FSRefer, to grant it on "/",
// because there are kernels where every layer denies FSRefer unless it grants it, as soon as any layer handles files
// (landlock_get_fs_access_mask in security/landlock/ruleset.h up to Linux 6.12).
func ScopesOnly() Ruleset {
	return Ruleset{
		UnhandledFS:  FSAll &^ FSRefer,
		UnhandledNet: NetAll,
		Paths:        []PathRule{{Path: "/", Access: FSRefer}},
	}
}

// HandledFS returns the file system rights that are denied unless a rule grants them.
func (r Ruleset) HandledFS() AccessFS { return FSAll &^ r.UnhandledFS }

// HandledNet returns the network rights that are denied unless a rule grants them.
func (r Ruleset) HandledNet() AccessNet { return NetAll &^ r.UnhandledNet }

// Scoped returns the scopes that are closed.
func (r Ruleset) Scoped() Scope { return ScopeAll &^ r.Unscoped }

// HandlesNothing reports whether r restricts nothing at all. Such a ruleset is never accepted.
func (r Ruleset) HandlesNothing() bool {
	return r.HandledFS() == 0 && r.HandledNet() == 0 && r.Scoped() == 0
}

// Validate returns a [*FieldError] for the first field that makes no sense, or nil. It does not look at the disk
// or the kernel.
func (r Ruleset) Validate() error {
	unknown := func(field, value string) error {
		return &FieldError{field, value, "unknown bits"}
	}
	switch {
	case r.UnhandledFS&^FSAll != 0:
		return unknown("UnhandledFS", r.UnhandledFS.String())
	case r.UnhandledNet&^NetAll != 0:
		return unknown("UnhandledNet", r.UnhandledNet.String())
	case r.Unscoped&^ScopeAll != 0:
		return unknown("Unscoped", r.Unscoped.String())
	case r.HandlesNothing():
		return &FieldError{"UnhandledFS, UnhandledNet, Unscoped", "all", "the ruleset would restrict nothing"}
	}
	for i, rule := range r.Paths {
		if err := rule.validate(fmt.Sprintf("Paths[%d]", i)); err != nil {
			return err
		}
	}
	for i, rule := range r.Ports {
		field := fmt.Sprintf("Ports[%d].Access", i)
		if rule.Access == 0 {
			return &FieldError{field, rule.Access.String(), "a rule must grant something"}
		}
		if rule.Access&^NetAll != 0 {
			return unknown(field, rule.Access.String())
		}
	}
	return nil
}

func (p PathRule) validate(field string) error {
	bad := func(reason string) error { return &FieldError{field + ".Path", p.Path, reason} }
	switch {
	case p.Path == "":
		return bad("empty")
	case strings.IndexByte(p.Path, 0) >= 0:
		return bad("holds a NUL byte")
	case !path.IsAbs(p.Path):
		return bad("not absolute")
	case p.Access == 0:
		return &FieldError{field + ".Access", p.Access.String(), "a rule must grant something"}
	case p.Access&^FSAll != 0:
		return &FieldError{field + ".Access", p.Access.String(), "unknown bits"}
	}
	return nil
}

// ParseRuleset reads a ruleset from JSON, with rights written by name ("read_file|read_dir"), and validates it. An
// unknown field or text after the value is an error; of a field given twice the last counts.
func ParseRuleset(data []byte) (Ruleset, error) {
	var r Ruleset
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return Ruleset{}, fmt.Errorf("landlock: ruleset: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Ruleset{}, &FieldError{"ruleset", "", "text after the end"}
	}
	if err := r.Validate(); err != nil {
		return Ruleset{}, err
	}
	return r, nil
}
