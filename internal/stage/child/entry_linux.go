package child

// A stage needs none of Go's runtime, whose start takes longer than all else
// that a stage does before the sandbox's first process lives. So the harness
// does not execute its own file again but a trampoline (package launch), which maps
// the harness's text and data where they lie in the harness, and jumps to
// stageEntry. What then runs is this package's code, as compiled, on the kernel's
// own stack.

func stageEntry()
func stageEntryAddr() uintptr

// givenFD is the descriptor of the program that this stage was given. It is no
// argument of stageMain: the race detector's code would be in the way to one.
var givenFD uintptr

// emptyG stands for the g of a goroutine: zeros, of which the guard at the head
// of each function is one. threadLocal holds its address, for amd64. threadLocal has
// the room that MaxTLS is of the program's thread-local storage.
var (
	emptyG      [64]uintptr
	threadLocal [72]uintptr
)

// MaxTLS is how much thread-local storage of the program there is room for.
const MaxTLS = 512

// Entry returns the address at which a stage begins that has no Go runtime.
func Entry() uintptr { return stageEntryAddr() }

var _, _, _ = stageEntry, &emptyG, &threadLocal // the assembly uses them
