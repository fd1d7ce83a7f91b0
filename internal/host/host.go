// Package host is what is known of the machine: facts with three answers, each
// with its reason and its remedy.
//
//	f := host.Facts{Landlock: host.Fact{Answer: host.Yes, Value: 7}}
//	if f.Landlock.Answer != host.Yes {
//		fmt.Println(f.Landlock.Reason, f.Landlock.Remedy)
//	}
//
// Facts are plain data: tests make them up. Read asks the kernel for them. Whether namespaces can really be made
// package stage tries out, and returns as a Trial, which Facts.Tried judges. Around has the container runtime or service manager of this
// process; Facts.Ways says, for that runtime, what to write where so that namespaces can be made.
//
// # Limits
//
// Facts hold for the process that read them and its children. A harness that
// changes its own limits or filters afterwards has to read them again.
package host

// An Answer is yes, no, or could not tell, which is the zero value.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// String returns "yes", "no" or "could not tell".
func (a Answer) String() string { return [...]string{"could not tell", "yes", "no"}[a%3] }

// MarshalText makes answers readable in JSON.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// A Fact is one thing that a sandbox needs to know of its host.
type Fact struct {
	Name   string `json:"name"`
	Answer Answer `json:"answer"`
	Value  int    `json:"value,omitempty"`  // a number, where the fact is one: Landlock's ABI
	Reason string `json:"reason,omitempty"` // how it was found out, or what stands in the way
	Remedy string `json:"remedy,omitempty"` // what would turn a no into a yes
}

// Yes reports whether the fact is certain to be so.
func (f Fact) Yes() bool { return f.Answer == Yes }

// Facts are all of them.
type Facts struct {
	Kernel     string `json:"kernel"` // as uname(2) gives it
	UID        int    `json:"uid"`
	GID        int    `json:"gid"`
	Image      Fact   `json:"image"`      // a stage can be executed without a Go runtime: faster, and nothing else
	Namespaces Fact   `json:"namespaces"` // the whole set, with a root, a /proc and a devpts of their own
	UserNS     bool   `json:"userNS"`     // they come with a user namespace
	NoCgroupNS bool   `json:"noCgroupNS"` // they come without a cgroup namespace: the quota on those is used up, as in a sandbox with Policy.Nested
	SharedPIDs bool   `json:"sharedPIDs"` // they come without a pid namespace: no new /proc can be mounted, as where the container's is covered in part
	NetApart   bool   `json:"netApart"`   // the network namespace belongs to another user namespace: root has no CAP_NET_ADMIN
	Chroot     bool   `json:"chroot"`     // they come with a root by chroot(2): pivot_root(2) is refused, or the root is an initramfs
	Overlay    Fact   `json:"overlay"`    // overlayfs inside a user namespace
	Landlock   Fact   `json:"landlock"`   // Value: the ABI
	Seccomp    Fact   `json:"seccomp"`
	Notify     Fact   `json:"notify"`     // seccomp user notification, with descriptors injected
	Memory     Fact   `json:"memory"`     // the supervisor can read the arguments of a tool's calls
	ByFile     bool   `json:"memoryFile"` // it reads them by /proc/PID/mem, since process_vm_readv(2) is refused
	Take       Fact   `json:"take"`       // it can take a descriptor out of a tool (pidfd_getfd(2))
	Keyring    Fact   `json:"keyring"`
	TUN        Fact   `json:"tun"`   // a TUN device in a network namespace of one's own
	Calls      Fact   `json:"calls"` // the calls that every start makes
	PIDFD      Fact   `json:"pidFD"` // pidfds can be opened, by which what stands in for a pid namespace ends a run

	Around   Around   `json:"around"` // the container runtime or service manager, and what it takes away
	Obstacle Obstacle `json:"-"`      // what was refused where Namespaces is no
	Shortage error    `json:"-"`      // a lack of descriptors, processes, memory or keys, for which not all could be found out
}

const memoryName, takeName = "reading a tool's memory", "taking a tool's descriptors"

// List returns the facts in the order in which people ask for them.
func (f Facts) List() []Fact {
	return []Fact{f.Namespaces, f.Overlay, f.Landlock, f.Seccomp, f.Notify, f.Memory, f.Take, f.Keyring, f.TUN, f.Image, f.Calls, f.PIDFD}
}
