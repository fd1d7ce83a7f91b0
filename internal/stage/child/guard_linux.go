package child

import (
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/guard"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// retryMS is how long init waits before it tries again what a tool's open of a
// FIFO waits for, in milliseconds; see guard.Retry.
const retryMS = 10

// makeGuard prepares the guard's state while there still is a Go runtime.
func makeGuard() string {
	span := st.hdr.Guard
	if span.Len == 0 {
		return ""
	}
	var err error
	if st.guard, err = guard.New(unsafe.Slice((*byte)(at(span.Off)), span.Len)); err != nil {
		return err.Error()
	}
	return ""
}

// beginGuard opens what the guard needs, in init, once its listener is there.
//
//go:norace
func beginGuard() bool {
	if st.guard == nil || st.listener < 0 {
		return st.guard == nil
	}
	return guard.Prepare(st.guard, int(st.reg[wire.RegProc]), int(st.listener)) == 0
}

// serveGuard answers one call of the tool that the guard's filter stopped.
//
//go:norace
func serveGuard() {
	if guard.Serve(st.guard) < 0 {
		st.poll[2].FD = -1
	}
}

// guardWait retries what waits, and returns how long poll may sleep: the
// address of a timespec, or 0 for ever.
//
//go:norace
func guardWait() uintptr {
	if st.guard == nil || guard.Pending(st.guard) == 0 {
		return 0
	}
	guard.Retry(st.guard)
	st.retry = [2]int64{0, retryMS * 1e6}
	return uintptr(unsafe.Pointer(&st.retry))
}
