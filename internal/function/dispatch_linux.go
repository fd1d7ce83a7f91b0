package function

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asked is the call that this process was started for; nil: it was started for none.
var asked = askedFor()

// An invocation is a call in the process that was started for it.
type invocation struct {
	name   string
	args   []string
	result int
	begun  atomic.Bool
}

// exitUnknown and the next ones are the exit status of a process for a function: as of a program's main where that says the same.
const (
	exitError   = 1
	exitPanic   = 2
	exitUnknown = 125
)

// askedFor finds the call among the process's descriptors.
func askedFor() *invocation {
	number, found := strings.CutPrefix(executedAs(), "/dev/fd/")
	program, err := strconv.Atoi(number)
	if !found || err != nil || program < 5 {
		return nil
	}
	call, result := program-2, program-1
	seals, err := unix.FcntlInt(uintptr(call), unix.F_GET_SEALS, 0)
	if err != nil || seals&sealed != sealed {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(call, &st) != nil || st.Size > 1<<30 {
		return nil
	}
	text := make([]byte, st.Size)
	if n, err := unix.Pread(call, text, 0); err != nil || n != len(text) {
		return nil
	}
	name, args, err := decodeCall(text)
	if err != nil {
		return nil
	}
	if value(atSecure) != 0 { // a setuid program, for one: the caller would have its functions run with its rights
		fmt.Fprintln(os.Stderr, "sandbox: no function is called in a process that has other rights than its caller (AT_SECURE of getauxval(3))")
		os.Exit(exitUnknown)
	}
	unix.CloseOnExec(result)
	unix.Close(call)
	unix.Close(program)
	i := &invocation{name: name, args: args, result: result}
	go i.watchMain()
	return i
}

// executedAs is the file's name in the call that executed this program.
func executedAs() string {
	if name := value(atExecfn); name != 0 {
		return unix.BytePtrToString(*(**byte)(unsafe.Pointer(&name)))
	}
	return ""
}

// Entries of the auxiliary vector.
const atSecure, atExecfn = 23, 31

// value is what the kernel has said of this process's execution (getauxval(3)); 0: nothing.
func value(kind uintptr) uintptr {
	auxv, _ := unix.Auxv()
	for _, v := range auxv {
		if v[0] == kind {
			return v[1]
		}
	}
	return 0
}

// dispatch calls the function that this process was started for, if it is this one, and does not return then. The function has a goroutine
// of its own: that of a program's initialisation is tied to one thread.
func dispatch(name string, body Body) {
	if asked == nil || asked.name != name {
		return
	}
	asked.begun.Store(true)
	os.Args = append([]string{name}, asked.args...)
	go asked.run(body)
	select {}
}

func (i *invocation) run(body Body) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			i.end(exitPanic, resultPanic, fmt.Sprint(v), string(debug.Stack()))
		}
		i.end(exitError, resultError, "the function ended its goroutine (runtime.Goexit)", "")
	}()
	err := body(ctx, os.Stdin, os.Stdout, i.args...)
	if returned = err == nil; returned {
		i.end(0, resultOK, "", "")
	}
	message := err.Error() // it may panic
	returned = true
	i.end(exitError, resultError, message, "")
}

// end writes how the function ended, and ends the process.
func (i *invocation) end(status int, kind byte, message, stack string) {
	b := encodeResult(kind, message, stack)
	unix.Pwrite(i.result, b[1:], 1)
	unix.Pwrite(i.result, b[:1], 0)
	os.Exit(status)
}

// watchMain ends the process if its main begins: the function is not registered in this process.
func (i *invocation) watchMain() {
	stacks := make([]byte, 1<<20)
	for !i.begun.Load() {
		if stacks = stacks[:runtime.Stack(stacks[:cap(stacks)], true)]; bytes.Contains(stacks, []byte("\nmain.main(")) && !i.begun.Load() {
			i.end(exitUnknown, resultError, "not registered in the process that was started for it: register it at package level, under no condition", "")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
