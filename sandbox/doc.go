// Package sandbox runs a tool as os/exec does, in bounds that the kernel enforces.
//
//	cmd := sandbox.Command("bash", "-c", script) // was exec.Command
//	out, err := cmd.CombinedOutput()
//	fmt.Println(cmd.Report()) // which bound held, by which mechanism
//
// Command's policy is [Workspace] of the working directory. Another one makes a
// [Sandbox], which serves any number of commands:
//
//	p := sandbox.ReadOnly("/srv/project")
//	p.Limits.WallClock = time.Minute
//	s, err := sandbox.New(p)
//	cmd := s.Command("rg", "needle")
//
// A policy is plain data: package [policy] has all of it, package rootfs explicit roots ([Policy].Root).
// [Allows] says what a policy allows and which field decides, [Sandbox.Explain] what will be done,
// [Cmd.Report] what held.
//
// # Network
//
// There is none until a policy's [Network] names hosts:
//
//	p := sandbox.WorkspaceNet(dir, "packages.example.com:443", "*.example.com")
//
// The tool stays in an empty network namespace. The harness serves an HTTP proxy and a SOCKS5 proxy on
// the tool's loopback, judges each host by name and each address after the look-up, and ends them with
// the run. Tools find the proxies by their environment. A denied request is answered with 403 and the
// reason, and is a [Violation]. Credentials, ssh, agents, datagrams, capture: docs/network.md.
//
// # Differences from os/exec
//
// A Cmd holds a real *exec.Cmd that anything may start; it enters the same sandbox or fails. The
// differences that most callers meet, of those in docs/os-exec.md:
//
//   - The policy filters the harness's environment, also what an Env of the command's own has of it.
//   - What the tool leaves behind in the background is dead when Wait returns.
//   - A policy's deadline ends the run as a kill does; Wait's error wraps [ErrDeadline].
//   - Process is the stage's, which passes signals on and ends as the tool ends. Stopping it with
//     SIGSTOP does not stop the tool.
//   - The embedded Cmd's own Start, and that of a wrapped command, may start a tool that cannot be
//     executed, which is exit status 126 or 127 and a line on standard error.
//   - SysProcAttr's Chroot, namespaces, id maps, AmbientCaps and Ptrace are refused.
//
// # Limits
//
// A bound that a Linux host cannot hold is an [UnsupportedError] from New, unless Policy.May names it
// (docs/hosts.md). On macOS a command runs under sandbox-exec, with a profile of the same policy, and holds
// less (docs/seatbelt-on-a-mac.md). Elsewhere Start's error wraps [errors.ErrUnsupported].
//
// A sandbox shares the host's kernel: it is no defence against a flaw in what the kernel offers to the
// tool, only a small surface for one. What open files, UNIX sockets and FIFOs that the command is given
// or shown allow: docs/security.md, docs/how-it-works.md.
package sandbox
