package policy

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

const (
	maxMakeData     = 1 << 20 // bytes of a File: it travels in the plan
	maxString       = 1 << 17 // MAX_ARG_STRLEN where pages have 4 KiB (linux/binfmts.h), with the NUL
	longestPatience = 24 * time.Hour
	leastFiles      = 16 // RLIMIT_NOFILE: the standard three, and what is open until execve

	// Below these the dynamic linker and the C library of a shell do not fit: execve(2) succeeds, and the tool ends with
	// SIGSEGV or "cannot allocate memory".
	leastAS, leastData, leastStack = 4 << 20, 512 << 10, 128 << 10
)

// Validate is everything that can be said of a policy without looking at the
// host. Its error is a [*PolicyError] for the first thing that is wrong.
func (p Policy) Validate() error {
	for _, check := range [...]func() error{p.Files.validate, p.Env.validate, p.Limits.validate, p.validateNetwork, p.validateSyscalls, p.validateBounds, p.validateRoot, p.validateNested, p.validateDir} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateRoot judges the layout, and what of the policy does not go with one.
func (p Policy) validateRoot() error {
	if p.Root == nil {
		return nil
	}
	if p.Files.Watch {
		return &PolicyError{Field: "Files.Watch", Problem: "cannot go with Root, whose paths are not the host's", Remedy: "leave it false, or write the Root's entries as Files"}
	}
	if f := p.Files; len(f.Read)+len(f.Write)+len(f.Hide)+len(f.Private)+len(f.CopyOnWrite)+len(f.Worktrees)+len(f.Make) > 0 || f.PrivateBytes > 0 || f.Tmp+f.Home != "" {
		return &PolicyError{Field: "Files", Problem: "cannot go with Root, which is the tool's whole root", Remedy: "write its rules as entries; of Files only Protect and HideNames count"}
	}
	if e := (*rootfs.FieldError)(nil); errors.As(p.Root.Validate(), &e) {
		return &PolicyError{Field: "Root." + e.Field, Value: e.Value, Problem: e.Problem, Remedy: e.Remedy}
	}
	if p.Root.Namespaces.AsPID1 && p.GuardsRoot() {
		return &PolicyError{Field: "Root.Namespaces.AsPID1", Problem: "leaves no process inside that could protect names: set Files.Protect.Off"}
	}
	return nil
}

// validateNested refuses what does not go with sandboxes inside: what a supervisor holds or records by paths, which mean other
// files in a mount namespace of the tool's; and open bounds, without which nothing keeps what the tool makes apart.
func (p Policy) validateNested() error {
	if !p.Nested {
		return nil
	}
	switch f := p.Files; {
	case p.Root != nil:
		return &PolicyError{Field: "Nested", Problem: "cannot go with Root", Remedy: "set Root.Nest"}
	case len(f.HideNames) > 0:
		return &PolicyError{Field: "Nested", Problem: "cannot go with Files.HideNames, which are held by paths that a tool with mounts of its own can change", Remedy: "leave HideNames empty, and show the directories that lack such files"}
	case f.Watch:
		return &PolicyError{Field: "Nested", Problem: "cannot go with Files.Watch, whose supervisor would be the only one that the kernel takes, for the sandboxes inside too", Remedy: "leave one of the two out"}
	case len(f.Write)+len(f.Tmp)+len(f.Home) > 0 && !f.Protect.Off && !f.writesDevices():
		return &PolicyError{Field: "Nested", Problem: "leaves no way to protect names (Files.Protect) in what the tool can write", Remedy: "list the trees in Files.CopyOnWrite instead of Files.Write, or set Files.Protect.Off"}
	}
	for i, b := range p.Open {
		if b != BoundNetwork && b != BoundEnvironment && b != BoundResources && b != BoundTime {
			return &PolicyError{Field: errtext.Indexed("Open", i), Value: string(b), Problem: "cannot be open with Nested", Remedy: "remove one of the two"}
		}
	}
	return nil
}

// writesDevices reports whether Write lists devices and nothing else.
func (f Files) writesDevices() bool {
	return f.Tmp+f.Home == "" && !slices.ContainsFunc(f.Write, func(p string) bool { return !pathrule.Within(p, "/dev") })
}

func (p Policy) validateDir() error {
	if p.Dir == "" {
		return nil
	}
	if e := checkPath(p.Dir, pathrule.Read); e != nil {
		e.Field = "Dir"
		return e
	}
	return nil
}

// GuardsRoot reports whether names are protected below something that Root shows for
// writing.
func (p Policy) GuardsRoot() bool {
	return p.Root != nil && len(p.Files.ProtectedPatterns())+len(p.Files.HideNames) > 0 && p.Root.ShowsForWriting()
}

func (p Policy) validateSyscalls() error {
	if p.Files.Watch && len(p.Programs) > 0 {
		return &PolicyError{Field: "Files.Watch", Problem: "cannot go with Programs: a stop overrules SECCOMP_RET_TRACE and SECCOMP_RET_LOG (seccomp(2))", Remedy: "leave one of the two out"}
	}
	if p.Syscalls.IsZero() {
		return nil
	}
	if err := p.Syscalls.Validate(); err != nil {
		return SyscallsError(err)
	}
	asks := func(field string, a seccomp.Action) error {
		if a != seccomp.Notify {
			return nil
		}
		return &PolicyError{Field: "Syscalls." + field, Value: a.String(), Problem: "needs a supervisor to ask, and a policy cannot name one", Remedy: "refuse with an Errno, or allow"}
	}
	for i, r := range p.Syscalls.Rules {
		if err := asks(errtext.Indexed("Rules", i)+".Action", r.Action); err != nil {
			return err
		}
	}
	return cmp.Or(asks("Default", p.Syscalls.Default), asks("Unknown", p.Syscalls.Unknown))
}

// SyscallsError names the field of a filter that package seccomp has refused.
func SyscallsError(err error) error {
	field := "Syscalls"
	if e := (*seccomp.Error)(nil); errors.As(err, &e) && e.Field != "" {
		field += "." + e.Field
	}
	return &PolicyError{Field: field, Problem: "no usable filter", Remedy: "start from seccomp.Default or seccomp.Strict, and change it by With and Without", Err: err}
}

// RlimitsError names the field of limits that package rlimit has refused.
func RlimitsError(err error, problem, remedy string) error {
	field, value := "Limits.Rlimits", ""
	if e := (*rlimit.FieldError)(nil); errors.As(err, &e) {
		field, value = field+"."+e.Field, e.Value
	}
	return &PolicyError{Field: field, Value: value, Problem: problem, Remedy: remedy, Err: err}
}

func (p Policy) validateBounds() error {
	for _, list := range [...]struct {
		field  string
		bounds []Bound
	}{{"May", p.May}, {"Open", p.Open}} {
		for i, b := range list.bounds {
			if !slices.Contains(plan.Bounds(), b) {
				return &PolicyError{Field: errtext.Indexed(list.field, i), Value: string(b), Problem: "no such bound",
					Remedy: "use one of the Bound constants"}
			}
		}
	}
	for i, b := range p.Open {
		if slices.Contains(p.May, b) {
			return &PolicyError{Field: errtext.Indexed("Open", i), Value: string(b), Problem: "May has the same bound",
				Remedy: "May is for a bound that is wanted where the host has it: remove one of the two"}
		}
		if rule := p.closes(b); rule != "" {
			return &PolicyError{Field: errtext.Indexed("Open", i), Value: string(b), Problem: rule + " bounds it", Remedy: "remove one of the two: where a bound is open its rules do nothing"}
		}
	}
	return nil
}

// closes names a field by which the policy bounds b and which no preset sets, so
// that a policy which opens b as well contradicts itself.
func (p Policy) closes(b Bound) string {
	switch {
	case b == BoundFiles && p.Files.Watch:
		return "Files.Watch"
	case b == BoundFiles && len(p.Files.HideNames) > 0:
		return "Files.HideNames"
	case b == BoundFiles && len(p.Files.Protect.Add) > 0:
		return "Files.Protect.Add"
	case b == BoundSyscalls && !p.Syscalls.IsZero() && !p.Syscalls.IsOff():
		return "Syscalls"
	case b == BoundResources && p.Limits.Rlimits != rlimit.Limits{}:
		return "Limits.Rlimits"
	case b == BoundTime && p.Limits.WallClock > 0:
		return "Limits.WallClock"
	}
	return ""
}

func (l Limits) validate() error {
	if err := l.Rlimits.Validate(); err != nil {
		return RlimitsError(err, "no such limit", "a soft limit is at most the hard one, and both are what setrlimit(2) takes; nil is rlimit.Defaults")
	}
	if n := l.Rlimits.NoFile; n != nil && min(n.Soft, n.Hard) < leastFiles {
		return &PolicyError{Field: "Limits.Rlimits.NoFile", Value: rlimit.NoFile.Format(*n), Problem: "too few descriptors to start a tool with", Remedy: "at least " + strconv.Itoa(leastFiles)}
	}
	for _, least := range [...]struct {
		field string
		limit *rlimit.Limit
		of    rlimit.Resource
		value uint64
	}{{"AS", l.Rlimits.AS, rlimit.AS, leastAS}, {"Data", l.Rlimits.Data, rlimit.Data, leastData}, {"Stack", l.Rlimits.Stack, rlimit.Stack, leastStack}} {
		if n := least.limit; n != nil && min(n.Soft, n.Hard) < least.value {
			return &PolicyError{Field: "Limits.Rlimits." + least.field, Value: least.of.Format(*n), Problem: "too little memory to start a program with", Remedy: "at least " + least.of.Format(*rlimit.At(least.value))}
		}
	}
	if l.WallClock < 0 || l.WallClock > 0 && l.WallClock < time.Millisecond {
		return &PolicyError{Field: "Limits.WallClock", Value: l.WallClock.String(), Problem: "less than a millisecond", Remedy: "zero is no deadline"}
	}
	return nil
}

func (e Env) validate() error {
	for i, n := range e.Pass {
		if problem := checkVariable(n); problem != "" {
			return &PolicyError{Field: errtext.Indexed("Env.Pass", i), Value: n, Problem: problem, Remedy: "name a variable; Set gives it a value"}
		}
		if _, err := path.Match(n, ""); err != nil || strings.ContainsAny(n, "{}|") {
			return &PolicyError{Field: errtext.Indexed("Env.Pass", i), Value: n, Problem: "not a pattern of path.Match", Err: err, Remedy: `write "*" for any text, and list each name`}
		}
	}
	for n, v := range e.Set {
		field := "Env.Set[" + strconv.Quote(n) + "]"
		if problem := checkVariable(n); problem != "" {
			return &PolicyError{Field: field, Value: n, Problem: problem, Remedy: "write the name as the key and the value as the value"}
		}
		if strings.ContainsRune(v, 0) {
			return &PolicyError{Field: field, Value: v, Problem: "has a NUL byte", Remedy: "remove it"}
		}
		if len(n)+len(v)+2 > maxString {
			return &PolicyError{Field: field, Value: strconv.Itoa(len(v)) + " bytes", Problem: "longer than execve(2) takes", Remedy: "at most 128 KiB with the name; put it in a File of Files.Make"}
		}
	}
	return nil
}

func checkVariable(name string) string {
	switch {
	case name == "":
		return "is empty"
	case strings.ContainsRune(name, 0):
		return "has a NUL byte"
	case strings.ContainsRune(name, '='):
		return "has a '='"
	}
	return ""
}

// Lists returns the lists of paths with their fields' names, in the order in
// which they are resolved: Hide last.
func (f *Files) Lists(sockets ...string) []pathrule.List {
	return []pathrule.List{
		{Field: "Files.Read", Kind: pathrule.Read, Paths: f.Read}, {Field: "Files.Write", Kind: pathrule.Write, Paths: f.Write}, {Field: "Files.CopyOnWrite", Kind: pathrule.CopyOnWrite, Paths: f.CopyOnWrite},
		{Field: "Files.Tmp", Kind: pathrule.Write, Paths: one(f.Tmp), Single: true}, {Field: "Files.Home", Kind: pathrule.Write, Paths: one(f.Home), Single: true},
		{Field: "Network.Unix", Kind: pathrule.Socket, Paths: sockets},
		{Field: "Files.Private", Kind: pathrule.Private, Paths: f.Private}, {Field: "Files.Hide", Kind: pathrule.Hide, Paths: f.Hide},
	}
}

// one is the list of a path, if there is one.
func one(p string) []string {
	if p == "" {
		return nil
	}
	return []string{p}
}

func (f Files) validate() error {
	n := len(f.Make)
	for _, list := range f.Lists() {
		n += len(list.Paths)
		for i, p := range list.Paths {
			if e := checkPath(p, list.Kind); e != nil {
				e.Field = list.Name(i)
				for _, shown := range f.Lists()[:2] { // a preset hides a workspace that it does not take
					if j := slices.Index(shown.Paths, "/"); j >= 0 && p == "/" && list.Kind == pathrule.Hide {
						e.Field = shown.Name(j)
					}
				}
				return e
			}
			if list.Single && (p == "/" || pathrule.Within(p, "/dev") || pathrule.Within(p, "/sys")) {
				return &PolicyError{Field: list.Field, Value: p, Problem: "is no directory for files of the tool's", Remedy: "name a directory made for it"}
			}
		}
	}
	for i, p := range f.Worktrees {
		if e := checkPath(p, pathrule.Read); e != nil {
			e.Field = errtext.Indexed("Files.Worktrees", i)
			return e
		}
	}
	for i, p := range f.MayShare {
		if !slices.Contains(f.Private, p) {
			return &PolicyError{Field: errtext.Indexed("Files.MayShare", i), Value: p, Problem: "is not in Files.Private", Remedy: "list it there, or in Files.Write if it is to be shared everywhere"}
		}
	}
	if n += len(f.Worktrees); n > pathrule.MaxRules {
		return &PolicyError{Field: "Files", Value: strconv.Itoa(n) + " rules", Problem: "too many", Remedy: "name directories instead of the files in them"}
	}
	if err := f.validateMake(); err != nil {
		return err
	}
	switch {
	case f.Decide != nil && !f.Watch:
		return &PolicyError{Field: "Files.Decide", Problem: "is asked about what Files.Watch sees fail", Remedy: "set Files.Watch, too"}
	case f.Patience < 0:
		return &PolicyError{Field: "Files.Patience", Value: f.Patience.String(), Problem: "is negative", Remedy: "zero is 30 seconds"}
	case f.Patience > 0 && f.Decide == nil:
		return &PolicyError{Field: "Files.Patience", Value: f.Patience.String(), Problem: "there is no Files.Decide to be waited for", Remedy: "remove it, or set Files.Decide"}
	case f.Patience > longestPatience:
		return &PolicyError{Field: "Files.Patience", Value: f.Patience.String(), Problem: "is too long", Remedy: "at most 24 hours"}
	}
	if f.PrivateBytes > 1<<62 {
		return &PolicyError{Field: "Files.PrivateBytes", Value: strconv.FormatUint(f.PrivateBytes, 10), Problem: "more than any machine has",
			Remedy: "zero is half of the memory"}
	}
	if err := checkNames("Files.HideNames", f.HideNames); err != nil {
		return err
	}
	if err := f.Protect.validate(); err != nil {
		return err
	}
	if n := len(f.HideNames) + len(f.ProtectedPatterns()); n > supervisor.MaxEntries {
		return &PolicyError{Field: "Files.HideNames", Value: strconv.Itoa(n) + " names with those of Files.Protect", Problem: "too many", Remedy: `at most 4096; "*" stands for any name`}
	}
	return nil
}

func (f Files) validateMake() error {
	for i, m := range f.Make {
		field := errtext.Indexed("Files.Make", i)
		e := checkPath(m.Path, pathrule.Make)
		if e == nil && m.Path == "/" {
			e = &PolicyError{Value: m.Path, Problem: "is a directory", Remedy: "name a file"}
		}
		if e != nil {
			e.Field = field + ".Path"
			return e
		}
		if m.Mode&^fs.ModePerm != 0 {
			return &PolicyError{Field: field + ".Mode", Value: m.Mode.String(), Problem: "has more than permission bits", Remedy: "use at most 0777"}
		}
		if len(m.Data) > maxMakeData {
			return &PolicyError{Field: field + ".Data", Value: strconv.Itoa(len(m.Data)) + " bytes", Problem: "too large",
				Remedy: "at most 1 MiB; grant a file of the host instead"}
		}
	}
	return nil
}

// checkPath is pathrule.Check as an error. The caller fills in Field.
func checkPath(p string, kind pathrule.Kind) *PolicyError {
	if problem, remedy := pathrule.Check(p, kind); problem != "" {
		return &PolicyError{Value: p, Problem: problem, Remedy: remedy}
	}
	return nil
}
