// Package trust decides whether the harness may follow a symbolic link, or execute a program, on its own behalf:
//
//	places := trust.New(os.Getenv("HOME"))
//	places.Holds("/usr/bin/git")                         // true: root's, and writable by root alone
//	git, err := places.Program("git", os.Getenv("PATH")) // exec.ErrNotFound: PATH has it in other places at most
//	out, err := trust.Run(git, env, "--version")         // ten seconds, 1 MiB of output, in "/"
//
// A tool that ran in an earlier sandbox can have made every file and link of its workspace, and PATH, a variable or a
// link of the user's can lead there. So the place decides: the directories of the system that root alone can write to,
// Nix's and Guix's stores, and below the user's home the directories of [Toolchains], which presets never let a tool
// write to.
//
// # Limits
//
// The judgement is about owners, modes and names at the time of the call. A policy that is written by hand, and that
// lets a tool write to one of these places, makes the tool's files trusted. For a harness that runs as root the owner
// says nothing, because its tools are root too; a list of system directories takes its place. On systems without
// owners of files nothing is trusted.
package trust
