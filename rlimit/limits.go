package rlimit

// Limits is a process's resource limits. A nil field stays as it is inherited; the zero value changes nothing.
//
// In JSON each field is a string, "soft:hard" or one value for both, under the name in lower case: {"fsize": "1GiB",
// "nofile": "1024:4096", "cpu": "1m", "core": "0"}.
type Limits struct {
	// AS is the address space in bytes; beyond it mmap and brk fail with ENOMEM. Programs that reserve much and use little
	// (a JavaScript engine, a sanitizer) need a generous one.
	AS *Limit
	// Core is the size of a core file in bytes. 0 writes none; with a pipe in /proc/sys/kernel/core_pattern 0 still starts
	// the program there, as root, and 1 does not (core(5), do_coredump in fs/coredump.c).
	Core *Limit
	// CPU is processor time in seconds, of all threads; at soft and each second after comes
	// SIGXCPU, at hard SIGKILL. The kernel reads 0 as 1 second.
	CPU *Limit
	// Data is the data segment and, since Linux 4.7, private writable mappings, in bytes; beyond it ENOMEM.
	Data *Limit
	// FSize is the size of a file that is written, in bytes; beyond it SIGXFSZ, or EFBIG where that is ignored.
	FSize *Limit
	// Locks is the number of flock locks and leases. The kernel has not enforced it since Linux 2.4.
	Locks *Limit
	// MemLock is memory locked into RAM, in bytes; beyond it ENOMEM or EPERM. CAP_IPC_LOCK is exempt.
	MemLock *Limit
	// MsgQueue is the memory of POSIX message queues of the user, in bytes; beyond it EMFILE.
	MsgQueue *Limit
	// Nice is the ceiling of the nice value as 20 minus nice: 1 (nice 19) to 40 (nice -20); 0 raises nothing.
	Nice *Limit
	// NoFile is one more than the highest descriptor number; beyond it EMFILE. It has no unlimited.
	NoFile *Limit
	// NProc is the number of threads of the real user; beyond it fork fails with EAGAIN. See the package's Limits.
	NProc *Limit
	// RSS is resident memory in bytes. The kernel has not enforced it since Linux 2.4.
	RSS *Limit
	// RTPrio is the ceiling of the real-time priority: 0 (none) to 99.
	RTPrio *Limit
	// RTTime is processor time in microseconds that a real-time thread uses without blocking;
	// beyond soft SIGXCPU, beyond hard SIGKILL.
	RTTime *Limit
	// SigPending is the number of queued signals of the user; beyond it sigqueue fails with EAGAIN.
	SigPending *Limit
	// Stack is the main thread's stack in bytes; beyond it SIGSEGV. A quarter of it is the room for arguments and environment.
	Stack *Limit
}

// of returns the field of r.
func (l *Limits) of(r Resource) **Limit {
	return [NumResources]**Limit{
		CPU: &l.CPU, FSize: &l.FSize, Data: &l.Data, Stack: &l.Stack, Core: &l.Core, RSS: &l.RSS, NProc: &l.NProc, NoFile: &l.NoFile,
		MemLock: &l.MemLock, AS: &l.AS, Locks: &l.Locks, SigPending: &l.SigPending, MsgQueue: &l.MsgQueue, Nice: &l.Nice,
		RTPrio: &l.RTPrio, RTTime: &l.RTTime,
	}[r]
}

// The defaults' figures, each the reason for itself in [Defaults].
const (
	defaultSoftFiles = 4096
	defaultHardFiles = 65536
	filesRoom        = 1024 // that are left to a harness of the same user, whose messages count together with the tool's
	defaultTasks     = 4096
	defaultSignals   = 4096
)

// Defaults returns limits that ordinary development tools do not feel, none above what is inherited: Core 1, so that no
// memory is left on disk and no program of the host's is started: with a pipe in core_pattern the kernel ignores 0, and
// gives up at 1 (do_coredump in fs/coredump.c); SigPending 4096, and with those of the user's other processes at most three
// quarters of what is inherited, so that others can still make timers (timer_create(2)); NoFile 4096, or up to 65536 for those that ask (as node, java and Go programs do), and fewer than are inherited, since
// descriptors in messages (unix(7), ETOOMANYREFS) are counted by user and held against each one's limit; NProc 4096
// threads more than are running, against fork bombs. The others are nil.
//
// The argument running is how many threads will already count against NProc when the tool
// starts: 0 in a user namespace of its own (Linux 5.14 or newer), where signals are counted apart, too; otherwise all threads of the
// user, and [Unlimited] if that is unknown: then NProc is nil, for a number that is below the
// present count would stop the tool's first fork.
func Defaults(inherited Values, running uint64) Limits {
	files := inherited[NoFile].Hard
	files -= min(filesRoom, files/4)
	signals := inherited[SigPending].Hard
	signals -= signals / 4
	if running == 0 { // they are counted apart, too
		signals = min(signals, defaultSignals)
	}
	l := Limits{
		Core:   At(min(1, inherited[Core].Hard)),
		NoFile: Between(min(defaultSoftFiles, files), min(defaultHardFiles, files)),
	}
	if most := inherited[SigPending].Hard; most > 0 && (running == 0 || most != Unlimited) { // none is left of 0; gVisor, which has that, refuses to set it
		l.SigPending = At(signals)
	}
	if running < Inherited-defaultTasks {
		l.NProc = At(min(running+defaultTasks, inherited[NProc].Hard))
	}
	return l
}

// Or returns l with the fields that are nil taken from d. The two share no memory with the result.
func (l Limits) Or(d Limits) Limits {
	var out Limits
	for r := range Resource(NumResources) {
		from := *l.of(r)
		if from == nil {
			from = *d.of(r)
		}
		if from != nil {
			limit := *from
			*out.of(r) = &limit
		}
	}
	return out
}

// Setting is one limit as it is to be set, with numbers alone: neither side is [Inherited].
type Setting struct {
	Resource Resource
	Soft     uint64
	Hard     uint64
}

// String prints the setting: "nofile 4096:65536".
func (s Setting) String() string {
	return s.Resource.String() + " " + s.Resource.Format(Limit{s.Soft, s.Hard})
}

// Validate returns a [*FieldError] for the first field, in the kernel's order, that no machine
// can hold: soft above hard, or a number the resource does not have. [Inherited] is not judged
// here.
func (l Limits) Validate() error {
	for r := range Resource(NumResources) {
		limit := *l.of(r)
		if limit == nil {
			continue
		}
		if reason := judge(r, *limit); reason != "" {
			return &FieldError{resources[r].field, r.Format(*limit), reason}
		}
	}
	return nil
}

func judge(r Resource, l Limit) string {
	known := l.Soft != Inherited && l.Hard != Inherited
	if known && l.Soft > l.Hard {
		return "the soft limit is above the hard limit"
	}
	most := resources[r].most
	for _, n := range [2]uint64{l.Soft, l.Hard} {
		if most != 0 && n > most && n != Inherited {
			return "above what the resource has (" + resources[r].unit.format(most) + ")"
		}
	}
	return ""
}

// Resolve returns what is to be set on a process with the inherited limits, in the kernel's
// order, without doing it. It is pure. A field that is not valid, or whose hard limit is above
// the inherited one, is a [*FieldError]: what was asked for by number is never lowered in
// silence. Settings that change nothing are left in, so that the result says all that was
// asked.
func (l Limits) Resolve(inherited Values) ([]Setting, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	var settings []Setting
	for r := range Resource(NumResources) {
		limit := *l.of(r)
		if limit == nil {
			continue
		}
		s := Setting{r, limit.Soft, limit.Hard}
		if s.Hard == Inherited {
			s.Hard = inherited[r].Hard
		}
		if s.Soft == Inherited {
			s.Soft = inherited[r].Soft
		}
		bad := func(reason string) ([]Setting, error) {
			return nil, &FieldError{resources[r].field, r.Format(*limit), reason + " (" + r.Format(inherited[r]) + ")"}
		}
		if s.Hard > inherited[r].Hard {
			return bad("the hard limit is above the inherited one")
		}
		if s.Soft > s.Hard {
			return bad("with the inherited limits the soft limit is above the hard limit")
		}
		settings = append(settings, s)
	}
	return settings, nil
}
