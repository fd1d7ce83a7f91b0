package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// An Action is what a step does: one of the types in this file. It prints as a
// person would say it.
type Action interface {
	String() string
	action()
}

type (
	// MapIDs maps the user and group of init in its new user namespace, to 0, which
	// mounting a devpts needs, or to the ids that To has.
	MapIDs struct{ To *IDs }
	// NestUser enters a second user namespace inside the first, where the ids are
	// what they are outside, or those that To has. From has what MapIDs has mapped
	// them to. Init loses its rights over the mounts it has made.
	NestUser struct{ From, To *IDs }
	// PrivateMounts cuts the propagation of mount events in both directions.
	PrivateMounts struct{}
	// NewRoot makes the tool's root directory: an empty tmpfs, or, with Host, the
	// harness's own root, read-only unless Write. With Free the tmpfs may hold what
	// the kernel lets it. With Private the root is a directory of the private tmpfs, in place of
	// Scratch: the kernel makes and ends one file system less.
	NewRoot struct{ Host, Write, Free, Private bool }
	// Scratch makes the private tmpfs from which Private directories are taken.
	// Bytes limits what it can hold; 0: 12 % of the machine's memory. With
	// Under it comes before the new root, which covers it.
	Scratch struct {
		Bytes uint64
		Under bool
	}
	// MakeLink makes a symbolic link in the new root.
	MakeLink struct{ Path, Target string }
	// MakeFile makes a small file in the new root or in a private directory. Where
	// Given is not 0, each run gives what stands in it: its file Given-1.
	MakeFile struct {
		Path  string
		Mode  uint32
		Data  string
		Given int
	}
	// Bind shows a file or directory of the host, with the mounts below it.
	Bind struct {
		Source, At string
		Dir        bool
		Write      bool
		Device     bool // device files work
	}
	// Private puts an empty writable directory of the scratch at a path. Slot
	// names it within the scratch.
	Private struct {
		At   string
		Slot string
		Mode uint32
	}
	// Hide covers a file or directory with an empty one that has no permissions. It may be gone when the run begins,
	// if the directory around it is In still: what another has moved away is shown somewhere else. With Spare it may
	// be gone with its directory, or lie where not even the sandbox's first process gets to.
	Hide struct {
		Path  string
		Dir   bool
		In    FileID // the zero value: it has to be there
		Spare bool
	}
	// Cover shows a file of the new root at the path of another, in its stead.
	Cover struct{ Path, By string }
	// Proc mounts a new procfs, with what is not per process read-only or hidden. With Network the settings of the
	// network stay within reach of a Loopback with Free. With Uncovered nothing is read-only or hidden: the kernel
	// lets a sandbox inside mount a /proc of its own only while one without covers is there. With Shared it is the
	// harness's own, with what covers parts of that, and read-only.
	Proc struct {
		Quotas    Quotas
		Network   bool
		Uncovered bool
		Shared    bool
	}
	// PTYs mounts a new devpts with its ptmx.
	PTYs struct{}
	// Queues mounts the POSIX message queues of the new ipc namespace at /dev/mqueue (mq_overview(7)), where the
	// kernel has any. Without the mount Landlock, which knows the rule for it by then, would refuse mq_open(2).
	Queues struct{}
	// Pivot makes the new root the root and lets go of the old. With Chroot that stays beneath the new root, which is
	// mounted on it.
	Pivot struct{ Chroot bool }
	// SealRoot makes the root's own tmpfs read-only.
	SealRoot struct{}
	// OpenProc opens /proc for init, which reads the evidence there.
	OpenProc struct{}
	// OpenRoot opens the harness's root directory for the self-check.
	OpenRoot struct{}
	// KeepRoot makes the harness's root the one that mounts are put on.
	KeepRoot struct{}
	// UnnamedTree puts an empty tree that is mounted nowhere in the place of the
	// harness's root for CheckRoot: no rule of Landlock can reach it. Fresh: one of
	// its own, not the scratch's.
	UnnamedTree struct{ Fresh bool }
	// Loopback brings up lo, in the new network namespace if there is one. With Here it is the one that init was
	// cloned into, which is then made with the others. With Free, ports below 1024 can be bound there
	// (net.ipv4.ip_unprivileged_port_start), and the group with the number Group in init's user namespace can send
	// echo requests (net.ipv4.ping_group_range): both settings belong to the network namespace. With Apart the
	// namespace is made in a user namespace of another user's: root does not need CAP_NET_ADMIN then, nor does it get
	// that.
	Loopback struct {
		Here  bool
		Apart bool
		Free  bool
		Group int
	}
	// JoinKeyring joins a new, empty session keyring. With Spare it goes on when
	// the user's quota of keys is used up (200 for an ordinary user, keyrings(7)):
	// the filter refuses the tool every use of the one it then keeps.
	JoinKeyring struct{ Spare bool }
	// SetNoNewPrivs sets no_new_privs.
	SetNoNewPrivs struct{}
	// DropCapabilities empties the bounding set and all others but one, which
	// KeepPtrace leaves to init: to read the tool's memory and namespaces. Those in
	// Keep are left as well, for the tool; see KeepCapabilities.
	DropCapabilities struct {
		KeepPtrace bool
		Keep       uint64
	}
	// DropLast gives up what DropCapabilities has kept.
	DropLast struct{}
	// Undumpable closes init's memory and descriptors to the tool.
	Undumpable struct{}
	// RestrictFiles applies a Landlock ruleset. With Follow its paths may lead through
	// symbolic links, which in a layout the mounts have followed as well.
	RestrictFiles struct {
		Ruleset landlock.Ruleset
		Follow  bool
	}
	// CheckRoot tries to list the harness's root directory, which Landlock must
	// refuse.
	CheckRoot struct{}
	// CheckSignal tries to signal init, which Landlock must refuse.
	CheckSignal struct{}
	// CheckKeyring notes the number of the session keyring.
	CheckKeyring struct{}
	// SetLimits sets resource limits.
	SetLimits struct{ Settings []rlimit.Setting }
	// Chdir enters the command's directory.
	Chdir struct{}
	// OwnNull replaces those of the tool's descriptors that are the machine's null
	// device, as a nil Stdin is, by the one that the sandbox shows.
	OwnNull struct{}
	// RestoreSignals gives the tool the signal state that os/exec would.
	RestoreSignals struct{}
	// LoadFilter loads a seccomp program.
	LoadFilter struct {
		Name    string
		Program seccomp.Program
	}
	// LoadKeeperFilter loads a seccomp program in which the placeholders of OwnProcess
	// are made those of the sandbox's own processes.
	LoadKeeperFilter struct{ Program seccomp.Program }
	// LoadSupervisor loads the supervisor's filter; init answers the calls it stops.
	LoadSupervisor struct {
		Program seccomp.Program
		Rules   string // encoded; see package supervisor
		Names   int    // how many names are protected
		Watch   bool   // what is not shown is recorded
		// Connects are the addresses that the tool may connect to, and Network says
		// that they are the only ones; without it connecting is not the supervisor's. In the
		// place of the last Given of them each run gives its own.
		Connects []netip.AddrPort
		Network  bool
		Given    int
	}
)

// An OwnProcess is one whose number is known when a run begins, where there is no pid
// namespace.
type OwnProcess uint32

// The sandbox's own processes, and the negative numbers of their process groups.
const (
	OwnStage OwnProcess = iota
	OwnKeeper
	OwnInit
	OwnKeeperGroup
	OwnInitGroup // where init and the tool have left that of the stage
	OwnGroup     // of the stage, in which init begins
	NumberOwn
)

// Placeholder is the number that stands for the process in a LoadKeeperFilter.
func (p OwnProcess) Placeholder() uint64 { return 0x6b656500 | uint64(p) }

// Quotas are limits that namespaces have, set by /proc/sys; 0: the kernel's.
type Quotas struct {
	PIDs      int // processes and threads, by the pid namespace's pid_max
	Users     int // user namespaces below init's first, which counts NestUser's
	Others    int // namespaces of each other kind, init's counted; but of cgroups none is made besides init's
	Instances int // of inotify
	Watches   int // of inotify
}

func (q Quotas) String() string {
	s := ""
	for _, l := range [...]struct {
		n    int
		what string
	}{{q.PIDs, "processes and threads"}, {q.Users, "nested user namespaces"}, {q.Others, "namespaces of another kind"}, {q.Instances, "inotify instances"}, {q.Watches, "inotify watches"}} {
		if l.n > 0 {
			s += fmt.Sprintf(", %d %s", l.n, l.what)
		}
	}
	if s == "" {
		return ""
	}
	return "; at most " + s[2:]
}

// IDs are a user and a group inside a user namespace.
type IDs struct{ UID, GID int }

func readWrite(write bool) string {
	if write {
		return "read-write"
	}
	return "read-only"
}

func (a MapIDs) String() string {
	if a.To != nil {
		return fmt.Sprintf("map the user to %d and the group to %d in the new user namespace", a.To.UID, a.To.GID)
	}
	return "map the user to 0 in the new user namespace"
}
func (a NestUser) String() string {
	if a.To != nil {
		return fmt.Sprintf("enter a nested user namespace as user %d, group %d", a.To.UID, a.To.GID)
	}
	return "enter a nested user namespace and map 0 back to the user"
}
func (PrivateMounts) String() string { return "make every mount private" }
func (a NewRoot) String() string {
	if a.Host {
		return "make the harness's root the root, " + readWrite(a.Write)
	}
	if a.Private {
		return "make a private tmpfs, and an empty root in it"
	}
	return "make an empty root"
}
func (a Scratch) String() string {
	if a.Bytes == 0 {
		return "make a private tmpfs"
	}
	return fmt.Sprintf("make a private tmpfs of at most %d bytes", a.Bytes)
}
func (a MakeLink) String() string { return "link " + a.Path + " -> " + a.Target }
func (a MakeFile) String() string {
	if a.Given > 0 {
		return "write " + a.Path + ", as each run gives it"
	}
	return fmt.Sprintf("write %s (%d bytes)", a.Path, len(a.Data))
}

func (a Bind) String() string {
	s := "bind " + a.Source + " " + readWrite(a.Write)
	if a.At != a.Source {
		s += " at " + a.At
	}
	return s
}
func (a Private) String() string      { return "private directory " + a.At }
func (a Hide) String() string         { return "hide " + a.Path }
func (a Cover) String() string        { return "show " + a.By + " at " + a.Path }
func (PTYs) String() string           { return "mount a new /dev/pts" }
func (Queues) String() string         { return "mount the message queues at /dev/mqueue" }
func (SealRoot) String() string       { return "make the root read-only" }
func (OpenProc) String() string       { return "open /proc" }
func (OpenRoot) String() string       { return "open the harness's root for the self-check" }
func (KeepRoot) String() string       { return "keep the harness's root" }
func (UnnamedTree) String() string    { return "make a tree that no rule names" }
func (JoinKeyring) String() string    { return "join a new session keyring" }
func (SetNoNewPrivs) String() string  { return "set no_new_privs" }
func (Undumpable) String() string     { return "make init undumpable" }
func (CheckRoot) String() string      { return "check that a directory outside cannot be listed" }
func (CheckSignal) String() string    { return "check that init cannot be signalled" }
func (CheckKeyring) String() string   { return "note the session keyring" }
func (Chdir) String() string          { return "enter the working directory" }
func (OwnNull) String() string        { return "open /dev/null anew where it was handed over" }
func (RestoreSignals) String() string { return "restore signal dispositions and mask" }
func (a Pivot) String() string {
	return map[bool]string{false: "pivot into the new root", true: "chroot into the new root, which covers the old"}[a.Chroot]
}
func (a DropCapabilities) String() string {
	if a.Keep != 0 {
		return fmt.Sprintf("drop all capabilities but %#x", a.Keep)
	}
	if a.KeepPtrace {
		return "drop all capabilities but CAP_SYS_PTRACE over the tool's namespace"
	}
	return "drop all capabilities"
}

func (DropLast) String() string { return "drop the last capability" }

func (a Proc) String() string {
	if a.Shared {
		return "bind the harness's /proc read-only, with its covers"
	}
	return "mount a new /proc" + a.Quotas.String()
}
func (a Loopback) String() string {
	if a.Free {
		return "bring up lo; ports below 1024 can be bound, and echo requests sent"
	}
	return map[bool]string{false: "bring up lo", true: "bring up lo in another user namespace"}[a.Apart]
}

func (a RestrictFiles) String() string {
	r := a.Ruleset
	if r.HandledFS()&^landlock.FSRefer == 0 { // refer is there to change nothing; see landlock.ScopesOnly
		if r.HandledNet() != 0 {
			return fmt.Sprintf("landlock: %d port rules", len(r.Ports))
		}
		return "landlock: " + r.Scoped().String()
	}
	return fmt.Sprintf("landlock: %d path rules, %d port rules", len(r.Paths), len(r.Ports))
}

func (a SetLimits) String() string {
	words := make([]string, len(a.Settings))
	for i, s := range a.Settings {
		words[i] = s.String()
	}
	return "limit " + strings.Join(words, ", ")
}

func (a LoadFilter) String() string {
	return fmt.Sprintf("load seccomp filter %s (%d instructions)", a.Name, a.Program.Len())
}

func (a LoadKeeperFilter) String() string {
	return fmt.Sprintf("load seccomp filter keepers (%d instructions)", a.Program.Len())
}

func (a LoadSupervisor) String() string {
	if a.Network {
		return fmt.Sprintf("load the supervisor of %d names and of connections, which may go to %v alone (%d instructions)", a.Names, a.Connects, a.Program.Len())
	}
	if a.Watch {
		return fmt.Sprintf("load the supervisor of %d names and of what is not shown (%d instructions)", a.Names, a.Program.Len())
	}
	return fmt.Sprintf("load the supervisor of %d names (%d instructions)", a.Names, a.Program.Len())
}

func (MapIDs) action()           {}
func (NestUser) action()         {}
func (PrivateMounts) action()    {}
func (NewRoot) action()          {}
func (Scratch) action()          {}
func (MakeLink) action()         {}
func (MakeFile) action()         {}
func (Bind) action()             {}
func (Private) action()          {}
func (Hide) action()             {}
func (Cover) action()            {}
func (Proc) action()             {}
func (PTYs) action()             {}
func (Queues) action()           {}
func (Pivot) action()            {}
func (SealRoot) action()         {}
func (OpenProc) action()         {}
func (OpenRoot) action()         {}
func (KeepRoot) action()         {}
func (UnnamedTree) action()      {}
func (Loopback) action()         {}
func (JoinKeyring) action()      {}
func (SetNoNewPrivs) action()    {}
func (DropCapabilities) action() {}
func (DropLast) action()         {}
func (Undumpable) action()       {}
func (RestrictFiles) action()    {}
func (CheckRoot) action()        {}
func (CheckSignal) action()      {}
func (CheckKeyring) action()     {}
func (SetLimits) action()        {}
func (Chdir) action()            {}
func (OwnNull) action()          {}
func (RestoreSignals) action()   {}
func (LoadFilter) action()       {}
func (LoadKeeperFilter) action() {}
func (LoadSupervisor) action()   {}
