package child

import (
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

func enterInit(top uintptr)
func passStackChecks()
func stackBounds() (lo, hi, guard uintptr)

// initStack is the stack of init and of the unstarted tool. Init needs about a
// thousand bytes of it, and a few times that in a program built for a debugger.
// Only what is touched takes memory.
var initStack [256 << 10]byte

//go:norace
//go:nocheckptr
func initStackTop() uintptr {
	return (sys.Addr(&initStack) + unsafe.Sizeof(initStack)) &^ 15
}

// stackKnown reports whether g, the goroutine's descriptor, begins as enterInit
// takes it to: with the stack's two ends and the guard that is compared with the
// stack pointer (runtime2.go). The guard may hold a request to yield instead.
func stackKnown() bool {
	const yield = ^uintptr(0) - 1313 // stackPreempt
	lo, hi, guard := stackBounds()
	var here byte
	at := uintptr(unsafe.Pointer(&here))
	return lo < at && at < hi && (guard == yield || lo < guard && guard < hi)
}

func vfork(flags uintptr) (pid uintptr)
