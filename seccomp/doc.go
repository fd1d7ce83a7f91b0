// Package seccomp makes filters of system calls: written as data, compiled to the kernel's
// seccomp programs for amd64 and arm64, run on made-up calls on any system, and loaded on
// Linux. It is usable alone. Ten lines that work:
//
//	filter := seccomp.Default().With(seccomp.Rule{
//		Names:  []string{"ptrace"},
//		Action: seccomp.Errno(seccomp.EPERM),
//		Reason: "no debuggers here",
//	})
//	arch, _ := seccomp.Native()
//	program, err := filter.Compile(arch)
//	if err == nil {
//		_, err = program.Load(seccomp.LoadOptions{}) // all threads, for good
//	}
//
// # The way through
//
// A [Filter] holds rules; [Default] and [Strict] are filters with a reason in every rule.
// [Filter.Compile] turns one into a [Program]; [Program.Evaluate] says what the program does
// to a [Call]; [Program.Load] puts it into force.
//
// # Limits
//
//   - A filter sees a call's number and its arguments as numbers. What a pointer points to (a path, a socket address, clone3's flags) it
//     cannot check, and to look it up later is a race.
//   - A filter stays for good, and goes on to every child. It can only be joined by more filters, of which the strictest result counts.
//   - Only amd64 and arm64 are known, both little-endian. Calls of other architectures on the same machine kill the process.
//   - Syscalls newer than the table get [Filter.Unknown]. A name that is not in the table cannot be used in a rule.
//   - System calls that do not enter the kernel (the vdso's clock_gettime) are not seen.
//   - Inside one process a filter is no boundary between threads: those share memory.
package seccomp
