package rlimit

import "math"

// Unlimited is no limit (RLIM_INFINITY).
const Unlimited uint64 = math.MaxUint64

// Inherited stands, on either side of a [Limit], for the value that is inherited there.
const Inherited uint64 = math.MaxUint64 - 1

// Limit is one resource's limit in the resource's unit. Its zero value is the strictest: none of it.
type Limit struct {
	Soft uint64 // what is enforced; the process may raise it up to Hard
	Hard uint64 // what soft may be raised to; it can only be lowered
}

// At returns a limit whose soft and hard sides are n.
func At(n uint64) *Limit { return &Limit{n, n} }

// Between returns a limit of soft, which the process may raise up to hard.
func Between(soft, hard uint64) *Limit { return &Limit{soft, hard} }

// Resource is a resource by the kernel's number (RLIMIT_*, include/uapi/asm-generic/resource.h; amd64 and arm64 use these).
type Resource int

// The resources.
const (
	CPU Resource = iota
	FSize
	Data
	Stack
	Core
	RSS
	NProc
	NoFile
	MemLock
	AS
	Locks
	SigPending
	MsgQueue
	Nice
	RTPrio
	RTTime

	// NumResources is how many there are.
	NumResources = int(iota)
)

// unit says how a resource's numbers are written.
type unit int

const (
	inCount unit = iota
	inBytes
	inSeconds
	inMicroseconds
)

// resources holds what each resource is called, in JSON and in errors, its unit, and the largest finite value that
// means something.
var resources = [NumResources]struct {
	key, field string
	unit       unit
	most       uint64
}{
	CPU:        {"cpu", "CPU", inSeconds, 0},
	FSize:      {"fsize", "FSize", inBytes, 0},
	Data:       {"data", "Data", inBytes, 0},
	Stack:      {"stack", "Stack", inBytes, 0},
	Core:       {"core", "Core", inBytes, 0},
	RSS:        {"rss", "RSS", inBytes, 0},
	NProc:      {"nproc", "NProc", inCount, 0},
	NoFile:     {"nofile", "NoFile", inCount, math.MaxInt32}, // fs.nr_open cannot be higher
	MemLock:    {"memlock", "MemLock", inBytes, 0},
	AS:         {"as", "AS", inBytes, 0},
	Locks:      {"locks", "Locks", inCount, 0},
	SigPending: {"sigpending", "SigPending", inCount, 0},
	MsgQueue:   {"msgqueue", "MsgQueue", inBytes, 0},
	Nice:       {"nice", "Nice", inCount, 40},
	RTPrio:     {"rtprio", "RTPrio", inCount, 99},
	RTTime:     {"rttime", "RTTime", inMicroseconds, 0},
}

// String is the resource's name as it stands in JSON: "nofile".
func (r Resource) String() string {
	if r < 0 || int(r) >= NumResources {
		return "unknown"
	}
	return resources[r].key
}

// Format prints l in r's unit: "4096:65536", "512MiB", "1m", "unlimited".
func (r Resource) Format(l Limit) string {
	u := resources[r].unit
	if l.Soft == l.Hard {
		return u.format(l.Soft)
	}
	return u.format(l.Soft) + ":" + u.format(l.Hard)
}

// Values are the limits that a process has, by [Resource].
type Values [NumResources]Limit
