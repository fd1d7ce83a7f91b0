package supervisor

import (
	"errors"

	"github.com/holdfast-dev/holdfast/internal/protected"
)

// Root is a directory, absolute and free of symbolic links, in which the names are protected.
type Root struct {
	Path string
	Fold bool // the file system folds case, so names are compared without it
}

// Rules is what the supervisor protects. The zero value protects nothing.
type Rules struct {
	Roots  []Root
	Names  []protected.Pattern // protected at every depth of every root
	Paths  []protected.Pattern // protected absolute paths, inside a root or not; the longer decides
	Hidden []string            // names, in the form of Pattern.Path, whose content may not be read either

	// Fence says that modes, owners and times can be changed in the roots, in the run's own directory and at Free paths
	// alone. It is for a sandbox without mounts: Landlock has no right for them.
	Fence bool

	// Shared says that the tool's paths below /dev/shm are in the directory "shm" of the run's own, and Terminals that it opens, of
	// terminals, those which it has made or was given. Both are for a sandbox without mounts.
	Shared, Terminals bool

	// NoNewGit says that no directory becomes a git directory, and no .git file is made. It counts where ".git" is among the names.
	NoNewGit bool

	// Watch has opens for reading, executions and looks at metadata recorded when they fail, too. Bare says for it that no mounts
	// hold the policy, but Landlock alone.
	Watch, Bare bool

	// Patience is how long an open that Watch sees fail waits for the harness's answer whether it gets a descriptor after all, in seconds.
	// 0: the harness is not asked.
	Patience uint32

	// MemFile says that the tool's memory is read by /proc/PID/mem, where process_vm_readv(2) is refused.
	MemFile bool

	// Near says that the tool's thread may be kept on the supervisor's processor while it is given a descriptor: no filter
	// around this process kills for sched_setaffinity(2).
	Near bool

	// FreeBinds leaves bind(2) to the kernel. It is for a host on which the supervisor cannot take a descriptor out of the tool
	// (pidfd_getfd(2)), and for a sandbox whose Landlock rules let no socket be made below Roots.
	FreeBinds bool

	// Connects says that the tool may connect TCP sockets to these addresses, TCP and UNIX sockets to those that it has bound, and nothing else
	// to anything. Nil leaves connect(2) alone.
	Connects []Endpoint
}

// Endpoint is an address of the host's loopback network, 127.0.0.0/8, and a port that is not 0.
type Endpoint struct {
	Addr [4]byte
	Port uint16
}

// MaxConnects is how many endpoints Rules may have: each connect(2) is compared with all of them.
const MaxConnects = 64

// MaxEntries is how many roots, names (with those that are hidden) and paths Rules may have of each.
const MaxEntries = 4096

// ErrRules is wrapped by every error about rules that cannot be encoded or a blob that cannot be decoded.
var ErrRules = errors.New("supervisor: bad rules")

// The blob: magic, total size, then the counts of roots, names and paths, a bitmap of the
// bytes a matching first component can begin with, the count of endpoints, a byte of flags, how many names begin with
// a wildcard, where the first of these and where the paths begin, and the records in
// that order, names with a wildcard in front last. It holds no pointer, so the forked child reads it in place.
const (
	blobMagic   = "HFGR"
	offSize     = 4
	offRoots    = 8
	offNames    = 10
	offPaths    = 12
	offBitmap   = 14
	offConnect  = offBitmap + 32
	offFence    = offConnect + 2
	offFlags    = offFence + 1
	offWatch    = offFlags + 1
	offTails    = offWatch + 1
	offTailsAt  = offTails + 2
	offPathsAt  = offTailsAt + 4
	offPatience = offPathsAt + 4
	offDevices  = offPatience + 4
	offRecords  = offDevices + 1

	kindHidden = 0x80 // set in the kind byte of a hidden name
	kindGit    = 0x40 // set in the kind byte of a name below .git
	kindFree   = 0x20 // set in that of another name of kind Whole: it is free in directories that the tool has made

	// The flags: git directories are found by their shape; and what of them is left open.
	flagShape      = 1
	flagHooks      = 2
	flagConfig     = 4
	flagAttributes = 8
	flagNoNewGit   = 16

	flagMemFile  = 32 // Rules.MemFile
	flagConnects = 64 // Rules.Connects is not nil

	// What of /dev is the tool's (see devices_linux.go), and how it is given descriptors.
	devShared    = 1
	devTerminals = 2
	devNear      = 4 // Rules.Near
	devHides     = 8 // something is hidden

	// What is watched: see watch_linux.go.
	watchOn    = 1
	watchNames = 2 // the calls that change names are served, and opens for writing
	watchReads = 4 // all opens are served
	watchBare  = 8

	compLiteral = 0
	compAny     = 1
	compDeep    = 2
	compPrefix  = 3
	compSuffix  = 4
)

// Encode returns the rules in the flat form that New takes. It returns an error wrapping ErrRules for a
// path that is relative, unclean, too long or holds a NUL byte, and for a pattern that can match nothing.
func (r *Rules) Encode() ([]byte, error) {
	b := make([]byte, offRecords)
	copy(b, blobMagic)
	names := append([]protected.Pattern(nil), r.Names...)
	for _, h := range r.Hidden {
		names = append(names, protected.Pattern{Path: h, Kind: kindHidden})
	}
	for _, n := range []int{len(r.Roots), len(names), len(r.Paths)} {
		if n > MaxEntries {
			return nil, bad("a list", "has more than 4096 entries")
		}
	}
	put16(b[offRoots:], uint16(len(r.Roots)))
	put16(b[offNames:], uint16(len(names)))
	put16(b[offPaths:], uint16(len(r.Paths)))
	for _, root := range r.Roots {
		if err := checkAbsolute(root.Path); err != nil {
			return nil, err
		}
		b = appendSized(append(b, boolByte(root.Fold)), trimEnd(root.Path, "/"))
	}
	b, err := appendNames(b, names)
	if err != nil {
		return nil, err
	}
	r.setFlags(b)
	paths := append([]protected.Pattern(nil), r.Paths...)
	sortByLength(paths)
	for _, p := range paths {
		if err := checkAbsolute(p.Path); err != nil {
			return nil, err
		}
		if !p.Kind.IsOfName() && p.Kind != protected.Unread && p.Kind != protected.Free || p.Path == "/" {
			return nil, bad(p.Path, "is no path that can be protected with this kind")
		}
		b = append(b, byte(p.Kind))
		b = appendSized(b, p.Path)
	}
	if b, err = appendConnects(b, r.Connects); err != nil {
		return nil, err
	}
	put32(b[offSize:], uint32(len(b)))
	return b, nil
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// appendConnects writes the endpoints as they are in a struct sockaddr_in.
func appendConnects(b []byte, endpoints []Endpoint) ([]byte, error) {
	if len(endpoints) > MaxConnects {
		return nil, bad("a list", "has more than 64 endpoints")
	}
	put16(b[offConnect:], uint16(len(endpoints)))
	for _, e := range endpoints {
		if e.Addr[0] != 127 || e.Port == 0 {
			return nil, bad("an endpoint", "is not one of the loopback network")
		}
		b = append(append(b, e.Addr[:]...), byte(e.Port>>8), byte(e.Port))
	}
	return b, nil
}

// setFlags writes what is said by a byte, and Patience.
func (r *Rules) setFlags(b []byte) {
	git := gitFlags(r.Names)
	if r.NoNewGit && git != 0 {
		git |= flagNoNewGit
	}
	b[offFlags] = git | boolByte(r.MemFile)*flagMemFile | boolByte(r.Connects != nil)*flagConnects
	b[offFence] = boolByte(r.Fence)
	b[offDevices] = boolByte(r.Shared)*devShared | boolByte(r.Terminals)*devTerminals | boolByte(r.Near)*devNear | boolByte(HidesNames(r))*devHides
	b[offWatch] = r.watches()
	put32(b[offPatience:], r.Patience)
}

// appendNames writes the names, those that begin with a wildcard last.
func appendNames(b []byte, names []protected.Pattern) ([]byte, error) {
	tails := uint16(0)
	for _, tail := range []bool{false, true} {
		if tail {
			put32(b[offTailsAt:], uint32(len(b)))
		}
		for _, p := range names {
			if (p.Path != "" && p.Path[0] == '*') != tail {
				continue
			}
			var err error
			if b, err = appendPattern(b, p); err != nil {
				return nil, err
			}
			if tail {
				tails++
			}
		}
	}
	put16(b[offTails:], tails)
	put32(b[offPathsAt:], uint32(len(b)))
	return b, nil
}

// gitFlags says that git directories are held when ".git" is among the names, and what of them is open because its name
// is not.
func gitFlags(names []protected.Pattern) byte {
	flags := byte(flagHooks | flagConfig | flagAttributes)
	for _, p := range names {
		switch p.Path {
		case ".git":
			flags |= flagShape
		case ".git/hooks":
			flags &^= flagHooks
		case ".git/config":
			flags &^= flagConfig
		case ".git/info/attributes":
			flags &^= flagAttributes
		}
	}
	if flags&flagShape == 0 {
		return 0
	}
	return flags
}

func checkAbsolute(p string) error {
	switch {
	case p == "", p[0] != '/', len(p) > 4095, has(p, 0):
		return bad(p, "is not an absolute path")
	case p == "/":
		return nil
	}
	for _, c := range components(p[1:]) {
		if c == "" || c == "." || c == ".." {
			return bad(p, "is not clean")
		}
	}
	return nil
}

func appendSized(b []byte, s string) []byte {
	return append(append16(b, uint16(len(s))), s...)
}

// appendPattern writes kind, component count, size, and per component its mode, length and bytes.
func appendPattern(b []byte, p protected.Pattern) ([]byte, error) {
	if !p.Kind.IsOfName() && p.Kind != kindHidden {
		return nil, bad(p.Path, "has a kind that is not known")
	}
	comps := components(p.Path)
	if len(comps) > 16 {
		return nil, bad(p.Path, "has more than 16 components")
	}
	var rec []byte
	deep := false
	for i, c := range comps {
		mode, text := byte(compLiteral), c
		switch {
		case c == "" || c == "." || c == ".." || len(c) > 255 || has(c, 0):
			return nil, bad(p.Path, "has an unusable component")
		case c == "*":
			mode, text = compAny, ""
		case c == "**":
			if deep || i == 0 || i == len(comps)-1 {
				return nil, bad(p.Path, "may have one **, in its middle")
			}
			mode, text, deep = compDeep, "", true
		case c[0] == '*':
			mode, text = compSuffix, c[1:]
		case c[len(c)-1] == '*':
			mode, text = compPrefix, trimEnd(c, "*")
		}
		if has(text, '*') || (i == 0 && text == "") {
			return nil, bad(p.Path, "has a wildcard where none is understood")
		}
		if i == 0 && mode != compSuffix {
			markFirst(b, text[0])
		}
		rec = append(rec, mode, byte(len(text)))
		rec = append(rec, text...)
	}
	kind := byte(p.Kind)
	if comps[0] == ".git" && len(comps) > 1 && kind != kindHidden {
		kind |= kindGit
	} else if kind == byte(protected.Whole) {
		kind |= kindFree
	}
	b = append(b, kind, byte(len(comps)))
	b = append16(b, uint16(len(rec)))
	return append(b, rec...), nil
}

// markFirst notes that a component beginning with c, in either case, can begin a match. Non-ASCII bytes are
// always looked at: on a folding file system they can vanish or stand for a letter.
func markFirst(b []byte, c byte) {
	set := func(c byte) { b[offBitmap+int(c>>3)] |= 1 << (c & 7) }
	set(c)
	if lower(c) != c || (c >= 'a' && c <= 'z') {
		set(c ^ 0x20)
	}
	from := offBitmap + 16
	if c >= 0x80 { // where case folds it may stand for an ASCII letter, so that any byte may be the first
		from = offBitmap
	}
	for i := from; i < offBitmap+32; i++ {
		b[i] = 0xff
	}
}

// Check reports, as an error wrapping ErrRules, a blob that is not whole. The serving code relies on it.
func Check(b []byte) error {
	if len(b) < offRecords || string(b[:4]) != blobMagic || int(get32(b[offSize:])) != len(b) {
		return bad("the blob", "is not of its stated size")
	}
	at := offRecords
	skip := func(head int, n uint16) bool {
		for range n {
			if at+head+2 > len(b) {
				return false
			}
			at += head + 2 + int(get16(b[at+head:]))
		}
		return at <= len(b)
	}
	names, tails := get16(b[offNames:]), get16(b[offTails:])
	ok := skip(1, get16(b[offRoots:])) && tails <= names && skip(2, names-tails) && at == int(get32(b[offTailsAt:])) &&
		skip(2, tails) && at == int(get32(b[offPathsAt:])) && skip(1, get16(b[offPaths:]))
	if !ok || at+6*int(get16(b[offConnect:])) != len(b) {
		return bad("the blob", "is not filled by its records")
	}
	return nil
}

// holdsNames reports whether the rules have something on names, so that the calls that change names are served.
func (r *Rules) holdsNames() bool { return len(r.Names)+len(r.Paths)+len(r.Hidden) > 0 }

// watches says what the serving code has to know of Watch: which of the stopped calls it serves because of a bound.
func (r *Rules) watches() (bits byte) {
	if !r.Watch {
		return 0
	}
	bits = watchOn
	if r.holdsNames() {
		bits |= watchNames
	}
	if HidesNames(r) {
		bits |= watchReads
	}
	if r.Bare {
		bits |= watchBare
	}
	return bits
}

// HidesNames reports whether the rules hide something, so that Filter must trap every open.
func HidesNames(r *Rules) bool {
	hides := len(r.Hidden) > 0
	for _, p := range r.Paths {
		hides = hides || p.Kind == protected.Unread
	}
	return hides
}

// sortByLength puts what is around a path before it. (Package slices would be initialised in every stage: see plain.go.)
func sortByLength(paths []protected.Pattern) {
	for i := range paths {
		for j := i; j > 0 && len(paths[j].Path) < len(paths[j-1].Path); j-- {
			paths[j], paths[j-1] = paths[j-1], paths[j]
		}
	}
}
