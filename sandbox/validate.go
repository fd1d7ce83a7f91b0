package sandbox

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/guard"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/seccomp"
)

const (
	maxPath     = 4095    // PATH_MAX without its NUL (linux/limits.h)
	maxName     = 255     // NAME_MAX
	maxRules    = 1 << 16 // path rules; far above what a person or a tool writes
	maxMakeData = 1 << 20 // bytes of a File: it travels in the plan
	maxString   = 1 << 17 // MAX_ARG_STRLEN where pages have 4 KiB (linux/binfmts.h), with the NUL
	leastFiles  = 16      // RLIMIT_NOFILE: the standard three, and what is open until execve
)

// validate is everything that can be said of a policy without looking at the
// host. It returns a *PolicyError for the first thing that is wrong, or nil.
func (p Policy) validate() error {
	for _, check := range [...]func() error{p.Files.validate, p.Env.validate, p.Limits.validate, p.validateNetwork, p.validateSyscalls, p.validateBounds, p.validateLayout} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p Policy) validateSyscalls() error {
	if p.Syscalls.IsZero() {
		return nil
	}
	if err := p.Syscalls.Validate(); err != nil {
		return syscallsError(err)
	}
	asks := func(field string, a seccomp.Action) error {
		if a != seccomp.Notify {
			return nil
		}
		return &PolicyError{Field: "Syscalls." + field, Value: a.String(), Problem: "needs a supervisor to ask, and a policy cannot name one", Remedy: "refuse with an Errno, or allow"}
	}
	for i, r := range p.Syscalls.Rules {
		if err := asks(indexed("Rules", i)+".Action", r.Action); err != nil {
			return err
		}
	}
	return cmp.Or(asks("Default", p.Syscalls.Default), asks("Unknown", p.Syscalls.Unknown))
}

// syscallsError names the field of a filter that package seccomp has refused.
func syscallsError(err error) error {
	field := "Syscalls"
	if e := (*seccomp.Error)(nil); errors.As(err, &e) && e.Field != "" {
		field += "." + e.Field
	}
	return &PolicyError{Field: field, Problem: "no usable filter", Remedy: "start from seccomp.Default or seccomp.Strict, and change it by With and Without", Err: err}
}

// limitError names the field of limits that package rlimit has refused.
func limitError(err error, problem, remedy string) error {
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
				return &PolicyError{Field: indexed(list.field, i), Value: string(b), Problem: "no such bound",
					Remedy: "use one of the Bound constants"}
			}
		}
	}
	for i, b := range p.Open {
		if slices.Contains(p.May, b) {
			return &PolicyError{Field: indexed("Open", i), Value: string(b), Problem: "May has the same bound",
				Remedy: "May is for a bound that is wanted where the host has it: remove one of the two"}
		}
		if rule := p.closes(b); rule != "" {
			return &PolicyError{Field: indexed("Open", i), Value: string(b), Problem: rule + " bounds it", Remedy: "remove one of the two: where a bound is open its rules do nothing"}
		}
	}
	return nil
}

// closes names a field by which the policy bounds b and which no preset sets, so
// that whoever opens b as well means one or the other.
func (p Policy) closes(b Bound) string {
	switch {
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
		return limitError(err, "no such limit", "a soft limit is at most the hard one, and both are what setrlimit(2) takes; nil is rlimit.Defaults")
	}
	if n := l.Rlimits.NoFile; n != nil && min(n.Soft, n.Hard) < leastFiles {
		return &PolicyError{Field: "Limits.Rlimits.NoFile", Value: rlimit.NoFile.Format(*n), Problem: "too few descriptors to start a tool with", Remedy: "at least " + strconv.Itoa(leastFiles)}
	}
	if l.WallClock < 0 || l.WallClock > 0 && l.WallClock < time.Millisecond {
		return &PolicyError{Field: "Limits.WallClock", Value: l.WallClock.String(), Problem: "less than a millisecond", Remedy: "zero is no deadline"}
	}
	return nil
}

func (e Env) validate() error {
	for i, n := range e.Pass {
		if problem := checkVariable(n); problem != "" {
			return &PolicyError{Field: indexed("Env.Pass", i), Value: n, Problem: problem, Remedy: "name a variable; Set gives it a value"}
		}
		if _, err := path.Match(n, ""); err != nil {
			return &PolicyError{Field: indexed("Env.Pass", i), Value: n, Problem: "not a pattern", Err: err, Remedy: `write "*" for any text`}
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

// ruleLists returns the lists of paths with their fields' names, in the order in
// which they are resolved: Hide last.
func (f *Files) ruleLists(sockets ...string) []ruleList {
	return []ruleList{
		{"Files.Read", fileRead, f.Read}, {"Files.Write", fileWrite, f.Write}, {"Files.CopyOnWrite", fileCopyOnWrite, f.CopyOnWrite},
		{"Network.Unix", fileSocket, sockets},
		{"Files.Private", filePrivate, f.Private}, {"Files.Hide", fileHide, f.Hide},
	}
}

type ruleList struct {
	field string
	kind  entryKind
	paths []string
}

func (f Files) validate() error {
	n := len(f.Make)
	for _, list := range f.ruleLists() {
		n += len(list.paths)
		for i, p := range list.paths {
			if e := checkPath(p, list.kind); e != nil {
				e.Field = indexed(list.field, i)
				return e
			}
		}
	}
	for i, p := range f.Worktrees {
		if e := checkPath(p, fileRead); e != nil {
			e.Field = indexed("Files.Worktrees", i)
			return e
		}
	}
	if n += len(f.Worktrees); n > maxRules {
		return &PolicyError{Field: "Files", Value: strconv.Itoa(n) + " rules", Problem: "too many", Remedy: "name directories instead of the files in them"}
	}
	if err := f.validateMake(); err != nil {
		return err
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
	if n := len(f.HideNames) + len(f.protectedPatterns()); n > guard.MaxEntries {
		return &PolicyError{Field: "Files.HideNames", Value: strconv.Itoa(n) + " names with those of Files.Protect", Problem: "too many", Remedy: `at most 4096; "*" stands for any name`}
	}
	return nil
}

func (f Files) validateMake() error {
	for i, m := range f.Make {
		field := indexed("Files.Make", i)
		e := checkPath(m.Path, fileMake)
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

// checkPath judges the text of one rule. The caller fills in Field.
func checkPath(p string, kind entryKind) *PolicyError {
	bad := func(problem, remedy string) *PolicyError {
		return &PolicyError{Value: p, Problem: problem, Remedy: remedy}
	}
	switch {
	case p == "":
		return bad("is empty", "remove it, or write an absolute path")
	case strings.ContainsRune(p, 0):
		return bad("has a NUL byte", "remove it")
	case p[0] != '/':
		return bad("is not absolute", "make it so with filepath.Abs")
	case path.Clean(p) != p:
		return bad("is not clean", "write "+strconv.Quote(shorten(path.Clean(p))))
	case len(p) > maxPath:
		return bad("is longer than 4095 bytes", "name a directory further up")
	}
	for c := range strings.SplitSeq(p, "/") {
		if len(c) > maxName {
			return bad("has a name longer than 255 bytes", "no file can have it: remove the rule")
		}
	}
	if problem, remedy := reserved(p, kind); problem != "" {
		return bad(problem, remedy)
	}
	return nil
}

// reserved says why a rule of this kind cannot stand at p, clean and absolute,
// because the place is the sandbox's own.
func reserved(p string, kind entryKind) (problem, remedy string) {
	switch {
	case p == "/" && kind != fileRead && kind != fileWrite:
		return "is the whole file system", "name a directory below it; Workspace does not take this one either"
	case within(p, "/proc"):
		return "the sandbox has a /proc of its own, of its own processes", "remove the rule"
	case p == "/dev", within(p, "/dev/pts"), within(p, "/dev/shm"), within(p, "/dev/mqueue"):
		return "the sandbox has a /dev of its own", `name the device files, such as "/dev/kvm", in Write`
	case within(p, "/dev") && kind != fileRead && kind != fileWrite:
		return "the sandbox has a /dev of its own", "a device file is in it when Read or Write names it"
	case within(p, "/sys") && kind != fileRead && kind != fileHide:
		return "the host's /sys can only be read", "name it in Read"
	}
	return "", ""
}

// within reports whether p is dir or lies below it. Both are clean.
func within(p, dir string) bool {
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || dir == "/" || p[len(dir)] == '/')
}
