// Bwrap is bubblewrap's command line on top of package sandbox: it takes the
// options of bubblewrap 0.11.1, in their order, and can stand in for it where
// programs call it.
//
//	bwrap [OPTIONS...] [--] COMMAND [ARGS...]
//
// Read it in the order in which it runs: the options files have every option as a
// row of a table, parse_linux.go goes through the arguments, policy_linux.go makes
// a sandbox.Policy of what they say, run_linux.go starts the command,
// status_linux.go writes what was asked for.
//
// It differs where bubblewrap holds less than it seems to: a destination never
// leads out of the new root; what the host mounts later does not appear; when it
// returns, or is killed, every process of the sandbox is dead; signals reach the
// command; /proc/sys is read-only for root too; the command has the descriptors 0,
// 1 and 2 and those that --share-fd names, an option of its own, and no others.
package main
