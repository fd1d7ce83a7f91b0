package function

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
)

// A Body is a function that can be started anew.
type Body func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error

// maxName is the length of the longest name.
const maxName = 128

var registered = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// Register gives a function a name. In a process that was started for that function it calls it and does not return. It panics on what
// is a mistake of the program: see check.
func Register(name string, body Body) {
	registered.Lock()
	problem := check(name, body)
	if problem == "" {
		registered.names[name] = true
	}
	registered.Unlock()
	if problem != "" {
		panic("sandbox: function " + fmt.Sprintf("%q", name) + " " + problem)
	}
	dispatch(name, body)
}

// check says what is wrong with a registration, or "".
func check(name string, body Body) string {
	switch {
	case name == "" || len(name) > maxName || strings.ContainsRune(name, 0):
		return fmt.Sprintf("cannot be registered: a name has 1 to %d bytes and no NUL", maxName)
	case body == nil:
		return "cannot be registered: it is nil"
	case registered.names[name]:
		return "is registered twice: give one of the two another name"
	case !initializing():
		return "is registered after the program's initialisation: make it a package-level variable, since the process that runs it does not come to main"
	}
	return ""
}

// initializing reports whether the caller runs in the initialisation of a package, on the way to main: in an init function or the value of
// a package-level variable.
func initializing() bool {
	var pcs [256]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	inits, root := false, false
	for {
		f, more := frames.Next()
		switch f.Function {
		case "main.main":
			return false // a plugin's initialisation, for one
		case "runtime.main":
			root = true
		}
		inits = inits || isInit(f.Function)
		if !more {
			return inits && root
		}
	}
}

// isInit reports whether a function is what the compiler makes of a package's variables, "pkg.init", or an init function, "pkg.init.0".
func isInit(function string) bool {
	_, name, _ := strings.Cut(function[strings.LastIndexByte(function, '/')+1:], ".")
	number, isNumbered := strings.CutPrefix(name, "init.")
	return name == "init" || isNumbered && number != "" && strings.Trim(number, "0123456789") == ""
}
