// Package commandtest has no code but tests. They run the same command by
// exec.Command and by sandbox.Command and compare all that a harness can see of it: results,
// errors, pipes, signals, terminals, process groups. They also count what a sandboxed command
// leaves behind: processes, descriptors, goroutines, files and mounts.
package commandtest
