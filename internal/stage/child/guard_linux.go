package child

import (
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/guard"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// retryMS is how long init waits before it tries again what a tool's open of a
// FIFO waits for, in milliseconds; see guard.Retry.
const retryMS = 10

// guardState is the guard's memory. Only what is touched takes any.
var guardState guard.State

// makeGuard prepares the guard's state if the program has rules for it.
//
//go:norace
//go:nocheckptr
func makeGuard() {
	if span := st.hdr.Guard; span.Len > 0 {
		st.guard = &guardState
		rules := [3]uintptr{st.base + uintptr(span.Off), uintptr(span.Len), uintptr(span.Len)} // a slice's three words
		var own unsafe.Pointer
		if off := st.hdr.Own; off != 0 && *(*byte)(at(off)) == '/' {
			own = at(off)
		}
		guard.Begin(st.guard, *(*[]byte)(unsafe.Pointer(&rules)), own)
	}
}

// beginGuard opens what the guard needs, in init, once its listener is there.
//
//go:norace
//go:nocheckptr
func beginGuard() bool {
	if st.guard == nil || st.listener < 0 {
		return st.guard == nil
	}
	return guard.Prepare(st.guard, int(st.reg[wire.RegProc]), int(st.listener)) == 0
}

// serveGuard answers one call of the tool that the guard's filter stopped.
//
//go:norace
//go:nocheckptr
func serveGuard() {
	if guard.Serve(st.guard) < 0 {
		st.poll[2].FD = -1
	}
}

// guardWait retries what waits, and returns how long poll may sleep: the
// address of a timespec, or 0 for ever.
//
//go:norace
//go:nocheckptr
func guardWait() uintptr {
	if st.guard == nil || guard.Pending(st.guard) == 0 {
		return 0
	}
	guard.Retry(st.guard)
	st.retry = [2]int64{0, retryMS * 1e6}
	return uintptr(unsafe.Pointer(&st.retry))
}
