package child

import (
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// A stage needs none of Go's runtime, whose start takes longer than all else
// that a stage does before the sandbox's first process lives. So the harness
// does not execute its own file again but a few hundred bytes copied from it,
// the image: they map the harness's text and data where they lie in the harness,
// and jump to stageEntry. What then runs is this package's code, as compiled,
// on the kernel's own stack.

func image()
func imageAddr() uintptr
func stageEntry()
func stageEntryAddr() uintptr

// givenFD is the descriptor of the program that this stage was given. It is no
// argument of beStage: the race detector's code would be in the way to one.
var givenFD uintptr

// emptyG stands for the g of a goroutine: zeros, of which the guard at the head
// of each function is one. threadLocal holds its address, for amd64.
var (
	emptyG      [64]uintptr
	threadLocal [72]uintptr
)

// Image returns the image's code, to be copied, and the address that it is to
// jump to.
func Image() (code []byte, entry uintptr) {
	at := imageAddr()
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), wire.ImageTable), stageEntryAddr()
}

var _, _, _, _ = image, stageEntry, &emptyG, &threadLocal // the assembly uses them
