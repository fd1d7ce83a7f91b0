package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// getAuxv is the runtime's copy of the auxiliary vector; x/sys/cpu reads it in
// the same way.
//
//go:linkname getAuxv runtime.getAuxv
func getAuxv() []uintptr

// init turns a process that was executed as wire.ExecPath into a stage, where
// the trampoline cannot be executed (see package launch): the same code, with a Go
// runtime around it that it does not use. The path comes from the kernel
// (AT_EXECFN, getauxval(3)), not from arguments or environment, so a caller who
// replaces those cannot make the harness's own main run in the tool's place.
//
// A program that has just gained rights (setuid, file capabilities: AT_SECURE) is no stage, whoever executes it by that path:
// the stage does with its rights what a program of the caller's says.
func init() {
	if !executedAs(wire.ExecPath) {
		return
	}
	fd, ok := programFD()
	givenFD = fd
	switch {
	case !ok || !sameRights():
		printError(wire.NotByASandbox)
	case !stackKnown():
		printError("this Go's goroutines are not laid out as the stage expects: it must not run")
	default:
		st.threads = true
		stageMain()
	}
	syscall.RawSyscall6(syscall.SYS_EXIT_GROUP, wire.ExitFailed, 0, 0, 0, 0, 0)
}

func executedAs(path string) bool {
	auxv := getAuxv()
	for i := 0; i+1 < len(auxv); i += 2 {
		if auxv[i] != sys.AT_EXECFN {
			continue
		}
		at := *(*unsafe.Pointer)(unsafe.Pointer(&auxv[i+1]))
		for j := range len(path) {
			if *(*byte)(unsafe.Add(at, j)) != path[j] {
				return false
			}
		}
		return *(*byte)(unsafe.Add(at, len(path))) == 0
	}
	return false
}

// sameRights reports whether the execve has changed no rights, and the real and the effective ids are the same.
func sameRights() bool {
	auxv := getAuxv()
	for i := 0; i+1 < len(auxv); i += 2 {
		if auxv[i] == sys.AT_SECURE {
			return auxv[i+1] == 0
		}
	}
	return false
}

// programFD reads the descriptor's number from the stage's own environment,
// which the harness wrote whole.
func programFD() (uintptr, bool) {
	s, ok := syscall.Getenv(wire.FDName)
	if !ok || s == "" || len(s) > 9 {
		return 0, false
	}
	n := uintptr(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + uintptr(s[i]-'0')
	}
	return n, n > 2
}
