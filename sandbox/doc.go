// Package sandbox runs a tool as os/exec does, in bounds that the kernel enforces.
//
//	cmd := sandbox.Command("bash", "-c", script) // was exec.Command
//	out, err := cmd.CombinedOutput()
//	fmt.Println(cmd.Report()) // which bound held, by which mechanism
//
// Command's policy is [Workspace] of the working directory. Another one makes a
// [Sandbox], for any number of commands, each alone or, in a [Session], together:
//
//	s, err := sandbox.New(sandbox.ReadOnly("/srv/project"))
//	cmd := s.Command("rg", "needle")
//	sess, err := s.Open(ctx) // its commands share processes, /tmp, HOME, loopback
//	cmd = sess.Command("npm", "run", "dev")
//
// A policy is plain data (package [policy]; package rootfs for explicit roots).
// [Allows] explains it, [Sandbox.Explain] what will be done, [Cmd.Report] what held.
//
// # Network
//
// There is none until a policy's [Network] names hosts:
//
//	p := sandbox.WorkspaceNet(dir, "packages.example.com:443", "*.example.com")
//
// The tool stays in an empty network namespace. On its loopback the harness serves proxies that the
// environment names, and judges hosts by name and their addresses. A denied request is answered with 403
// and the reason, and is a [Violation] (docs/network.md).
//
// # Differences from os/exec
//
// A Cmd holds a real *exec.Cmd that anything may start; it enters the same sandbox or fails. The
// differences that most callers meet, of those in docs/os-exec.md:
//
//   - The policy filters the harness's environment, also within the field Env.
//   - What the tool leaves in the background dies with it, but for sessions.
//   - A policy's deadline kills; Wait's error wraps [ErrDeadline].
//   - Process is the stage's, which passes signals on, but SIGSTOP, and ends as the tool ends.
//   - The embedded Cmd's own Start, and that of a wrapped command, may start a tool that cannot be
//     executed, which is exit status 126 or 127 and a line on standard error.
//   - SysProcAttr's Chroot, namespaces, id maps, AmbientCaps, Ptrace are refused.
//
// # Limits
//
// A bound that a Linux host cannot hold is an [UnsupportedError] from New, unless Policy.May names it
// (docs/hosts.md). macOS has sandbox-exec, with a profile of the same policy, and holds less
// (docs/seatbelt-on-a-mac.md). Elsewhere Start's error wraps [errors.ErrUnsupported].
//
// A sandbox shares the host's kernel: it is a small surface for a flaw of that, and no defence. What open files,
// UNIX sockets and FIFOs that the command is given or shown allow: docs/security.md.
package sandbox
