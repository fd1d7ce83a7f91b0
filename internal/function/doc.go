// Package function starts functions of this program as tools: the same executable, in a new process, which runs one function of its own
// and ends before main is called.
//
//	func init() { function.Register("lint", body) } // or sandbox.Func, for a variable
//
//	call, err := function.New("lint", args, program) // the harness: what the new process is given
//	// ... a process executes the program by its descriptor, the last of call.Files
//	err = call.Result(err) // once it has ended: a policy.FuncError, if the function returned one or panicked
//
//	register.go          the names, and when they may be registered
//	call.go              which function, and its arguments: as text
//	call_linux.go        the harness's half: the descriptors of one call
//	program_linux.go     the copy of this program's file that is executed
//	dispatch_linux.go    the new process's half: which function it was started for; run it, say how it ended
//	result.go            how it ended: as text, read as a hostile process may have written it
//
// # How a process knows that it was started for a function
//
// It is executed by its descriptor (execveat(2), AT_EMPTY_PATH), of which the kernel tells it the number: AT_EXECFN is then "/dev/fd/N"
// (getauxval(3), alloc_bprm of fs/exec.c). The two descriptors before that one are the call, a sealed memfd, and the result, a memfd of fixed
// size. Neither arguments nor variables can make a process one of these, nor make it call another function, and /proc/PID/cmdline
// shows the function's name only.
//
// The function is called by Register itself, in the initialisation of the package that registers it. The language initialises before
// that what the package imports and the package's variables that the function mentions, by itself or through functions that it calls; init functions of
// the same package come later. A process for whose function Register is not called exits as soon as its main has begun
// (watchMain): Register refuses all names that are not registered in an initialisation, so that is a program which
// registers by what its arguments or variables are.
//
// # The result
//
// A memfd that cannot grow bounds what the process can say, and cannot hold it up, as a pipe can. It is the process's alone: other
// commands of the session may not trace it (Landlock's layer around each tool), and the function's own children do not inherit it. They
// may trace the function, and so write its result, as may code that the function has run. A result is a statement of the sandbox's inside.
package function
