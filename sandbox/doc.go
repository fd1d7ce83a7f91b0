// Package sandbox runs a tool as os/exec does, inside bounds that the kernel
// enforces and that are read back from it.
//
//	cmd := sandbox.Command("bash", "-c", script) // was exec.Command
//	out, err := cmd.CombinedOutput()
//	fmt.Println(cmd.Report()) // which bound held, by which mechanism
//
// Command's sandbox is [Workspace] of the working directory. For another, start
// from a preset and make a [Sandbox], which serves any number of commands:
//
//	p := sandbox.ReadOnly("/srv/project")
//	p.Limits.WallClock = time.Minute
//	s, err := sandbox.New(p)
//	cmd := s.Command("rg", "needle")
//
// A policy is plain data: package [policy] has all of it, package rootfs roots that are built entry by
// entry ([Policy].Root). [Allows] says whether a policy allows an access, and which field decides;
// [Sandbox.Explain] prints what will be done; [Cmd.Report] says what held.
//
// # Network
//
// There is none until a policy's [Network] names hosts:
//
//	p := sandbox.WorkspaceNet(dir, "packages.example.com:443", "*.example.com")
//
// The tool stays in an empty network namespace. Listeners on its loopback are passed up to the
// harness, which serves them as an HTTP proxy and a SOCKS5 proxy, judges each host by name and each
// address after the look-up, and ends them with the run. Tools find the proxies by their environment
// (HTTP_PROXY and its kin), which is set after [Env] has been applied; a command with an Env of its own
// adds [Cmd.NetworkEnviron]. A denied request is answered with 403 and the reason, and is a [Violation]
// of the report. Credentials, ssh, agents, datagrams and tools that read no variable: docs/network.md.
//
// # Differences from os/exec
//
// A Cmd holds a real *exec.Cmd that anything may start; it enters the same sandbox or fails. What a
// caller can observe is the same, but for a list in docs/os-exec.md, of which most callers meet these:
//
//   - A nil Env is what the policy lets pass of the harness's environment.
//   - When the tool has ended, what it left behind in the background is dead, and Wait returns
//     after that.
//   - A deadline of the policy ends the run as a kill does. Wait's error wraps [ErrDeadline].
//   - Process is the stage's, which passes signals on and ends as the tool ends. Stopping it with
//     SIGSTOP does not stop the tool.
//   - The embedded Cmd's own Start, and that of a wrapped command, return an error for a tool that
//     cannot be executed where that can be known before the fork. The rest is exit status 126 or 127
//     and a line on the tool's standard error.
//   - SysProcAttr's Chroot, namespaces, id maps, AmbientCaps and Ptrace are refused: the policy is the
//     place for what they do.
//
// # Limits
//
// A bound that a Linux host cannot hold is an [UnsupportedError] from New, unless Policy.May names it
// (docs/hosts.md). On macOS a command runs under sandbox-exec, with a profile that is emitted from the
// same policy, and holds less (docs/seatbelt-on-a-mac.md). Elsewhere everything builds, and Start returns
// an error that wraps [errors.ErrUnsupported].
//
// A sandbox shares the host's kernel: it is no defence against a flaw in what the kernel offers to the
// tool, only a small surface for one. What the command is given as an open file, it has: a regular file
// on its standard input can, on a host without Landlock, be opened anew for writing by the user who
// owns it. What UNIX sockets and FIFOs in the shown directories allow: docs/security.md, docs/how-it-works.md.
package sandbox
