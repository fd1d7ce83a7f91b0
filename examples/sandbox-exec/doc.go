// Sandbox-exec is the command line of macOS's sandbox-exec on Linux, on top of
// packages sandbox/sbpl and sandbox. On macOS it hands over to the system's own.
//
//	sandbox-exec [-f file | -n name | -p string] [-D key=value ...] [--strict] [--] command [arguments ...]
//	sandbox-exec [-f file | -n name | -p string] [-D key=value ...] --explain OPERATION ARGUMENT
//	sandbox-exec [-f file | -n name | -p string] [-D key=value ...] --classes
//
// The status is the command's own; 64 for arguments that cannot be, 65 for a
// profile that cannot, and 71 where the sandbox cannot be made or the command not
// be executed in it. A command that is ended by a signal gives 128 and its number.
//
// Ours are: --strict, which refuses, with 65, a profile of which Linux would hold
// less than it says; --classes, which prints each rule and how it is held here;
// --explain, which says what the profile answers, by which rule and why, and on
// Linux how that rule is held, with status 0 for allow and 1 for deny.
//
// Read it in the order in which it runs: options.go, main.go, then run_linux.go.
package main
