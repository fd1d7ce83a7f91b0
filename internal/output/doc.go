// Package output keeps the end of what a command prints, to be read again and searched while it runs.
//
//	log := output.New()
//	cmd.Stdout = log.Tee(cmd.Stdout)          // a writer; for none: f, err := log.Pipe()
//	log.Started()                             // the command was started, or log.Abandon()
//	match, err := log.Wait(ctx, regexp.MustCompile(`listening on (\S+)\n`))
//	out := log.Read(0)                        // out.Data, and out.Next for the following call
//
// A Log takes nothing from the command's own writers: a Tee writes to them too, and fails as they do. A Pipe is for a command without a writer. It
// is read to its end, so that processes that the command leaves in the background can go on printing.
//
// # Bounds
//
//   - A Log keeps the last 256 KiB.
//   - A match of Wait spans 4 KiB at most where it is not in what was kept when Wait began. Each write is searched before the next one is read,
//     so no output is missed, and the command waits for the search.
//
// # Limits
//
// A Tee learns of the end of its writer's output from io.Copy, which calls ReadFrom, as os/exec uses it. What a command prints to a file
// of its caller's is not seen.
package output
