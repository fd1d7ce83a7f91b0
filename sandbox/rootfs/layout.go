package rootfs

import (
	"io/fs"
	"os"
	"slices"
)

// A Layout is a root, and what goes with one: an empty directory into which the
// entries are put in order, a later one over an earlier one. It needs namespaces;
// whether it can be built is known when a command starts.
type Layout struct {
	Entries    []Entry
	Namespaces Namespaces // what is shared; zero: nothing
	Privileges Privileges // which rights are kept; zero: none
	// Locks lists files inside on which a read lock is held while the tool runs.
	Locks []string
	// Nest lets the tool build sandboxes of its own: Landlock, which refuses
	// to mount, stays off, and with it what it holds, and no filter stands in for
	// it. Where no names are protected files can be made setuid, too. The policy's
	// system call profile has to allow what that takes as well.
	Nest bool
}

// An Entry is one thing that a [Layout] puts into the tool's root: a
// [Bind], [Tmpfs], [Dir], [File], [DataBind], [Symlink], [Chmod],
// [RemountReadOnly], [Proc], [Dev], [Mqueue], [Overlay], [TmpOverlay] or
// [ReadOnlyOverlay].
//
// At is where: an absolute path inside. It is looked up when the command starts,
// in the root as it is then, in which symbolic links, absolute ones too, lead to
// places of that root and never to the host. Directories that are missing on the
// way are made with mode 0755, or less if the entry's own mode has less. What is
// made inside something that an earlier entry shows of the host for writing is
// made on the host; inside something read-only it is an error.
//
// A source (Source, Layers, Upper, Work) is a path of the host, whose links are
// followed when the sandbox is made and never later: with a link in the place of
// one of its directories the command does not start (ELOOP). What a command finds
// is what has the path then, a directory that was made anew included. Nor is a link
// followed, unless names are protected nowhere (Files.Protect), in a tree that the
// layout shows for writing: New refuses it. A mode of zero is the entry's default; see [NoAccess].
type Entry interface{ layoutEntry() }

// NoAccess is a mode of an [Entry] without any permission, which zero is not.
const NoAccess fs.FileMode = fs.ModeIrregular

// Bind shows a file or directory tree of the host, with all that is mounted in
// it, as it was when the command started: what the host mounts there later does
// not appear. Setuid bits in it have no effect.
type Bind struct {
	Source string
	At     string

	// File, if set, takes the place of Source: what it has open, a directory or
	// file. If another file has taken its place meanwhile, the command does not
	// start.
	File *os.File

	Write   bool // it can be changed; otherwise neither it nor anything mounted in it can
	Devices bool // device files in it work
	NoExec  bool // nothing in it can be executed
	// NoExecve refuses execve(2) of what is in it, while it can be mapped, as
	// libraries are. Landlock holds it, and only where no entry around this one lets
	// programs be executed.
	NoExecve bool
	// Optional leaves the entry out when Source does not exist. Any other reason why
	// it cannot be shown is still an error.
	Optional bool
}

// Tmpfs puts an empty directory that can be written and is gone afterwards.
type Tmpfs struct {
	At     string
	Mode   fs.FileMode // zero: 0755
	Bytes  uint64      // what it can hold; zero: half of the memory
	NoExec bool        // nothing in it can be executed
}

// Dir makes a directory, unless there is one, whose mode then stays as it is.
type Dir struct {
	At   string
	Mode fs.FileMode // zero: 0755
}

// File makes a small file.
type File struct {
	At   string
	Data string
	Mode fs.FileMode // zero: 0444
}

// DataBind shows a file with the given content that lies nowhere else.
type DataBind struct {
	At    string
	Data  string
	Mode  fs.FileMode // zero: 0600
	Write bool        // it can be changed; the changes are gone afterwards
}

// Symlink makes a symbolic link. One that is there and has the same target is
// left; anything else that is there is an error.
type Symlink struct{ At, Target string }

// Chmod changes the mode of what is at a path.
type Chmod struct {
	At   string
	Mode fs.FileMode
}

// RemountReadOnly makes a mount read-only, but not those that lie in it. At must
// be where an entry has mounted something, or "/".
type RemountReadOnly struct{ At string }

// Proc mounts a /proc of the tool's own processes, or, with
// [Namespaces.SharePID], the harness's.
type Proc struct {
	At string
	// Uncovered leaves what belongs to the machine, such as /proc/sys, as writable
	// as it is to this user. The kernel then lets the tool make a /proc of its own
	// for a sandbox in this one. It has no effect for root.
	Uncovered bool
}

// Dev makes a /dev with null, zero, full, random, urandom and tty, the usual
// links, a shm directory and terminals of its own.
type Dev struct {
	At      string
	Console string // a terminal of the host that is its console; "": it has none
}

// Mqueue mounts the POSIX message queues of the tool's ipc namespace.
type Mqueue struct{ At string }

// Overlay shows Layers on top of each other, the bottom first, and writes to
// Upper. Work is an empty directory on Upper's file system.
type Overlay struct {
	At          string
	Layers      []string
	Upper, Work string
}

// TmpOverlay is an [Overlay] whose writes are gone afterwards.
type TmpOverlay struct {
	At     string
	Layers []string
}

// ReadOnlyOverlay is an [Overlay] of at least two layers without writes.
type ReadOnlyOverlay struct {
	At     string
	Layers []string
}

func (Bind) layoutEntry()            {}
func (Tmpfs) layoutEntry()           {}
func (Dir) layoutEntry()             {}
func (File) layoutEntry()            {}
func (DataBind) layoutEntry()        {}
func (Symlink) layoutEntry()         {}
func (Chmod) layoutEntry()           {}
func (RemountReadOnly) layoutEntry() {}
func (Proc) layoutEntry()            {}
func (Dev) layoutEntry()             {}
func (Mqueue) layoutEntry()          {}
func (Overlay) layoutEntry()         {}
func (TmpOverlay) layoutEntry()      {}
func (ReadOnlyOverlay) layoutEntry() {}

// Clone returns a copy that shares nothing with l but the open files.
func (l Layout) Clone() Layout {
	l.Entries, l.Locks = slices.Clone(l.Entries), slices.Clone(l.Locks)
	for i, e := range l.Entries {
		switch e := e.(type) {
		case Overlay:
			e.Layers = slices.Clone(e.Layers)
			l.Entries[i] = e
		case TmpOverlay:
			e.Layers = slices.Clone(e.Layers)
			l.Entries[i] = e
		case ReadOnlyOverlay:
			e.Layers = slices.Clone(e.Layers)
			l.Entries[i] = e
		}
	}
	l.Privileges.Capabilities = slices.Clone(l.Privileges.Capabilities)
	if as := l.Namespaces.As; as != nil {
		ids := *as
		l.Namespaces.As = &ids
	}
	return l
}

// ShowsForWriting reports whether the tool can change any of the host's files.
func (l Layout) ShowsForWriting() bool {
	for _, e := range l.Entries {
		if b, ok := e.(Bind); ok && b.Write {
			return true
		}
	}
	return false
}
