// Package inside has the files of a session as the session's tools see them: the act is done inside, by a process behind the same mounts,
// Landlock rules, supervisor and filters, and comes back as a descriptor or an error.
//
//	files := sess.Files() // sess is a *sandbox.Session
//	text, err := files.ReadFile("main.go")
//	err = files.Replace("main.go", edited)
//	matches, err := fs.Glob(files.FS(), "tmp/*.log")
//	copied, err := files.CopyOut(ctx, "/tmp/site", "/srv/site") // copy.go
//
// A name means what it means to a command of the session: the private /tmp, the copies, the hidden names; relative ones begin in the directory
// that the session's commands start in, which Session.SetDir sets. Nothing is checked in the harness, so that no tool that swaps links meanwhile leads it
// to a file outside.
//
// # How
//
// The server (server_linux.go) is a function of this program (package internal/function), a command of the session like others. It starts at the first
// use, and anew after its death. Each request has a connection (SOCK_SEQPACKET) for itself while it lasts (client_linux.go), and one answer,
// whose layout is in wire.go, or a second one, when the server has closed a file that the harness writes. The harness takes the answers for a hostile process's: what a descriptor is
// the kernel says, not the server (file_linux.go), and a request that is not answered in time kills the server.
//
// # Limits
//
// Regular files and directories only: another file is refused, and cannot hold the harness up; so is one of procfs, sysfs, a cgroup or the like, to write.
// Names have fewer than 4,096 bytes, a directory, and all that Glob reads, at most 1,048,576 entries, and what is read whole at most 256 MiB. A tool may kill or stop the server, as it may any command:
// what was under way then fails. What a tool changes between two requests is seen by the second one. A file is open for what it was opened
// for, wherever the policy stands later.
package inside
