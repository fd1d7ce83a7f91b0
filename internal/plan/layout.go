package plan

import "fmt"

// FileID is which file a descriptor named, so that the one which a path leads to
// later can be told from another. The zero value is any file.
type FileID struct{ Device, Inode uint64 }

// These actions build an explicit layout. Each path is resolved inside the new
// root, where symbolic links, absolute ones too, lead to places of that root and
// nowhere else. Directories that are missing on the way are made.
type (
	// PutBind shows a file or directory of the host, with the mounts below it.
	PutBind struct {
		Source, At string
		Dir        bool
		Write      bool
		Device     bool   // device files work
		NoExec     bool   // nothing in it can be executed
		NoExecve   bool   // nothing in it can be started, though mapped; the ruleset holds it
		Is         FileID // not zero: refuse another file than this
		Plain      bool   // refuse symbolic links on the way to At
	}
	// PutTmpfs mounts an empty tmpfs. Bytes is what it can hold; 0: half the memory.
	PutTmpfs struct {
		At     string
		Mode   uint32
		Bytes  uint64
		NoExec bool
	}
	// PutDir makes a directory where there is none.
	PutDir struct {
		At   string
		Mode uint32
	}
	// PutFile writes a file, over one that is there. Given is as MakeFile's.
	PutFile struct {
		At    string
		Mode  uint32
		Data  string
		Given int
	}
	// PutData shows a file that exists in the scratch alone, without a name there.
	PutData struct {
		At    string
		Mode  uint32
		Data  string
		Write bool
		Slot  string
	}
	// PutLink makes a symbolic link, or finds the same one there.
	PutLink struct{ At, Target string }
	// PutMode changes the mode of what is there.
	PutMode struct {
		At   string
		Mode uint32
	}
	// PutReadOnly makes one mount read-only, and none of those below it.
	PutReadOnly struct{ At string }
	// PutProc mounts a new procfs, or shows the host's. Cover makes what is not per
	// process read-only.
	PutProc struct {
		At    string
		New   bool
		Cover bool
	}
	// PutDev makes a /dev with these devices of the host, a devpts and the usual
	// links. Console is the terminal that its console is; "": it has none.
	PutDev struct {
		At      string
		Devices []string // names in /dev
		Console string
	}
	// PutQueue mounts the mqueue file system.
	PutQueue struct{ At string }
	// PutOverlay mounts an overlay of Layers, the bottom first. Writes go to Upper
	// or, without it, to Slot in the scratch; without either there are none.
	PutOverlay struct {
		At          string
		Layers      []string
		Upper, Work string
		Slot        string
	}
)

// These actions are about what else a layout's policy can ask for.
type (
	// Floor puts an empty tmpfs under what is built, over the harness's root.
	Floor struct{}
	// ClearUmask sets the umask to 0 while the root is built.
	ClearUmask struct{}
	// RestoreUmask sets it back.
	RestoreUmask struct{}
	// OwnProc makes a procfs that is mounted nowhere, for init to read the evidence
	// in.
	OwnProc struct{ Quotas Quotas }
	// Hostname names the machine inside.
	Hostname struct{ Name string }
	// BecomeIDs takes on ids of a user namespace that was joined.
	BecomeIDs struct{ UID, GID int }
	// EnterUser enters the user namespace of a given descriptor.
	EnterUser struct{ Given int }
	// ForbidUsers limits the user namespaces below this one to the one that
	// NestUser makes.
	ForbidUsers struct{}
	// CheckNoUsers fails if a user namespace can be made.
	CheckNoUsers struct{}
	// KeepCapabilities gives the tool these capabilities, and no execve takes them
	// away. With All it has what init has, and no execve takes away what is
	// inheritable of it.
	KeepCapabilities struct {
		Mask uint64
		All  bool
	}
	// Lock takes a read lock on a file, which init holds.
	Lock struct{ Path string }
	// Gate waits, if the run has a hook for it, until the harness opens it.
	Gate struct{ Built bool }
)

func (a PutBind) String() string {
	s := "bind " + a.Source + " " + readWrite(a.Write)
	if a.Device {
		s += " with devices"
	}
	return s + " at " + a.At
}
func (a PutTmpfs) String() string { return fmt.Sprintf("tmpfs %#o at %s", a.Mode, a.At) }
func (a PutDir) String() string   { return fmt.Sprintf("directory %#o at %s", a.Mode, a.At) }
func (a PutFile) String() string {
	if a.Given > 0 {
		return fmt.Sprintf("write %s %#o, as each run gives it", a.At, a.Mode)
	}
	return fmt.Sprintf("write %d bytes %#o at %s", len(a.Data), a.Mode, a.At)
}
func (a PutData) String() string {
	return fmt.Sprintf("show %d bytes %#o %s at %s", len(a.Data), a.Mode, readWrite(a.Write), a.At)
}
func (a PutLink) String() string     { return "link " + a.At + " -> " + a.Target }
func (a PutMode) String() string     { return fmt.Sprintf("mode %#o of %s", a.Mode, a.At) }
func (a PutReadOnly) String() string { return "make the mount at " + a.At + " read-only" }
func (a PutProc) String() string {
	if a.New {
		return "mount a new procfs at " + a.At
	}
	return "show the harness's procfs at " + a.At
}
func (a PutDev) String() string   { return "make devices at " + a.At }
func (a PutQueue) String() string { return "mount message queues at " + a.At }
func (a PutOverlay) String() string {
	kind := "read-only overlay"
	switch {
	case a.Upper != "":
		kind = "overlay that writes to " + a.Upper
	case a.Slot != "":
		kind = "copy-on-write overlay"
	}
	return fmt.Sprintf("%s of %d layers at %s", kind, len(a.Layers), a.At)
}
func (Floor) String() string        { return "cover the harness's root" }
func (ClearUmask) String() string   { return "clear the umask" }
func (RestoreUmask) String() string { return "restore the umask" }
func (OwnProc) String() string      { return "make a procfs for init alone" }
func (a Hostname) String() string   { return "name the host " + a.Name }
func (a BecomeIDs) String() string  { return fmt.Sprintf("become user %d, group %d", a.UID, a.GID) }
func (EnterUser) String() string    { return "enter the given user namespace" }
func (ForbidUsers) String() string  { return "forbid further user namespaces" }
func (CheckNoUsers) String() string { return "check that no user namespace can be made" }
func (a Lock) String() string       { return "lock " + a.Path }
func (a KeepCapabilities) String() string {
	if a.All {
		return "keep all capabilities"
	}
	return fmt.Sprintf("keep capabilities %#x", a.Mask)
}
func (a Gate) String() string {
	if a.Built {
		return "wait for the harness, with the walls built"
	}
	return "wait for the harness, with nothing built"
}

func (PutBind) action()          {}
func (PutTmpfs) action()         {}
func (PutDir) action()           {}
func (PutFile) action()          {}
func (PutData) action()          {}
func (PutLink) action()          {}
func (PutMode) action()          {}
func (PutReadOnly) action()      {}
func (PutProc) action()          {}
func (PutDev) action()           {}
func (PutQueue) action()         {}
func (PutOverlay) action()       {}
func (Floor) action()            {}
func (ClearUmask) action()       {}
func (RestoreUmask) action()     {}
func (OwnProc) action()          {}
func (Hostname) action()         {}
func (BecomeIDs) action()        {}
func (EnterUser) action()        {}
func (ForbidUsers) action()      {}
func (CheckNoUsers) action()     {}
func (KeepCapabilities) action() {}
func (Lock) action()             {}
func (Gate) action()             {}

// HiddenProc are the files of a procfs that belong to the machine and not to a
// process, and that a Proc hides. The last RootsProc are root's alone to read.
var HiddenProc = []string{
	"kcore", "keys", "key-users", "kmsg", "kpagecount", "kpageflags", "kpagecgroup", "timer_list", "sched_debug", "kallsyms", "latency_stats", "timer_stats",
	"interrupts", "softirqs", "slabinfo", "vmallocinfo", "pagetypeinfo", "allocinfo",
}

// RootsProc is how many of HiddenProc an ordinary user may not read anyway.
const RootsProc = 4
