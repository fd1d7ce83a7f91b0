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
// # Layouts
//
// A policy's Files say what exists; its Root, in their place, builds the tool's
// root entry by entry, in order, at any path. Package rootfs has the entries:
//
//	p := sandbox.Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{
//		rootfs.Bind{Source: "/usr", At: "/usr"},
//		rootfs.Symlink{Target: "usr/lib64", At: "/lib64"},
//		rootfs.Tmpfs{At: "/tmp"},
//	}}}
//
// A command's Path and Dir are then paths inside: a name without a slash is looked
// for in the PATH of the tool's environment, in the new root; /proc/self/exe is
// the harness's own program, shown or not. A relative Dir is one from the working
// directory, by its path; an empty one is the working directory if that is inside, or
// HOME, or the root. PWD is as os/exec has it, but where the tool starts in HOME or
// the root it says so. Every other mechanism holds as it does without a layout.
//
// # Network
//
// There is none until a policy's [Network] names hosts:
//
//	p := sandbox.WorkspaceNet(dir, "packages.example.com:443", "*.example.com")
//
// The tool stays in an empty network namespace. The sandbox's first process makes listeners
// on its loopback and passes them up; the harness serves them as an HTTP proxy (at port
// 3128, unless the policy names that) and a SOCKS5 proxy (1080). It judges each host by
// name before the name is looked up, and each address after. No other process is needed, inside
// or outside, and the proxies end with the run: Wait returns after that.
//
// Tools find the proxies by their environment: HTTP_PROXY and its kin, those of
// git, npm, pip, cargo, Java and others. They are set after [Env] has been applied,
// and win over it; a command with an Env of its own adds [Cmd.NetworkEnviron]. A tool that reads none
// of them reaches nothing, unless [policy.Network].Capture takes its packets. That carries
// datagrams too, to what [policy.Network].UDP grants.
//
// A denied request is answered with 403 and a few lines that name the host, the
// rule and why; the [Report] has it among its Violations, with what would allow it.
//
// With Credentials or Requests the harness ends TLS for the hosts they name. The
// tool then has a trust bundle of its own, /run/holdfast/ca.pem, with the
// system's authorities and the sandbox's own, which the environment names to the
// tools. If the policy shows the host's /run, it lies in the first Private
// directory; where the sandbox has no place of its own, in a directory of the
// run's own on the host, which is gone afterwards.
//
// SSHAgent and GPGAgent put a socket inside that the harness serves, in front of the
// user's agent. gpg looks for it below HOME, which has to be private, and needs
// the public keys: show pubring.kbx there, by Files.Read or Files.Make.
//
// # Differences from os/exec
//
// A [Cmd] holds a real *exec.Cmd that anything may start; it enters the same
// sandbox or fails. What a caller can observe is the same, but for this:
//
//   - A nil Env is what the policy lets pass of the harness's environment.
//   - When the tool has ended, what it left behind in the background is dead,
//     and Wait returns after that.
//   - Cancel is never nil: by default it kills everything inside.
//   - A deadline of the policy ends the run as a kill does. Wait's error wraps
//     [ErrDeadline]; that of the embedded Cmd's own Wait does not.
//   - A command whose Cancel is set to nil, without a WaitDelay, gets its Env and
//     ExtraFiles back, and its sandbox awaited, only by this type's methods.
//   - Stopping Process with SIGSTOP stops the stage, not the tool.
//   - Process is the stage's, which passes signals on and ends as the tool ends.
//   - The embedded Cmd's own Start, and that of a wrapped command, return an error for a tool that
//     cannot be executed where that can be known before the fork: a missing file or
//     interpreter, permissions, formats, too many arguments. The rest is
//     exit status 126 or 127 and a line on the tool's standard error: with
//     binfmt_misc in use a format that the kernel does not know; a
//     file or directory that root enters by its capabilities alone; what a security
//     module forbids; all of it in a Layout. The same holds for a step of building
//     the sandbox that failed. (This type's methods return all of it from Start.)
//   - With a [Network], the embedded Cmd's own Start, and that of a wrapped command, refuse a
//     command whose Cancel is nil and WaitDelay zero: os/exec then starts no goroutine
//     from which the network could be served.
//   - The Path of an embedded Cmd, and of a wrapped one, is the stage's, and so is what their
//     String prints; the tool's is [Cmd.Path]. A library that looks at Path finds the
//     stage: hashicorp/go-plugin's SecureConfig hashes it, and so refuses each good
//     plugin; tests in the style of mcp-go's, which compare filepath.Base(cmd.Path),
//     fail. Check the tool before the command is made.
//   - Without the context's watcher, that is without Cancel and WaitDelay, the run's own
//     goroutine may end shortly after the embedded Cmd's Wait.
//   - From the first command on the harness keeps two descriptors open, of the stage's
//     image and of its own executable, numbered 1000 and above where the limit allows; they
//     close on exec.
//   - A terminal that the tool is given has no name inside: tty(1) says "not a tty" and
//     ps(1) shows "?", since /dev/pts is the sandbox's own. isatty(3), /dev/tty, its size
//     and job control work; ttys that the tool opens have names.
//   - SysProcAttr's Chroot, namespaces, id maps, AmbientCaps and Ptrace are
//     refused: the policy is the place for what they do.
//   - A NUL byte is a [PolicyError] that wraps EINVAL; a working directory that
//     has been removed is refused.
//   - ExtraFiles may be some 990, or as many as the limit on descriptors leaves.
//   - A socket of the harness's network is refused as Stdin, Stdout, Stderr or one of
//     ExtraFiles unless the tool shares that network, since it can be connected
//     anew, to anywhere; a UNIX socket that is connected or listens is passed on, and
//     another one, or one of datagrams, where mounts and Landlock's scopes keep the tool
//     to its own. (On macOS all are: the profile judges connections, not sockets.)
//   - Descriptors that leak into every child of the harness are closed.
//   - Inside, process ids are others, root has no capabilities, and the wait
//     status never has the core-dump flag. ProcessState's times are the stage's
//     and the tool's together.
//
// A test runs a table of cases through both and compares everything that can be
// observed; it holds this list to be complete.
//
// # macOS
//
// There a command runs under sandbox-exec, with a profile that is emitted from the
// same policy; Explain prints it. What macOS cannot hold is an UnsupportedError
// unless Policy.May names the bound, as the presets do there, and stands in the
// report: nothing is mounted for one process, so no directory is private and
// nothing is copied on write, processes outside can be seen, and system calls are
// not bounded. HOME and TMPDIR name directories of the run's own if the policy has
// Private ones. The first argument of the tool is its path, whatever Args[0] is;
// SysProcAttr cannot choose a process group; Wrap is unsupported; a tool that
// ends with status 65 or 71 costs a second trial of the profile. A harness inside
// a sandbox cannot start another: that is an UnsupportedError.
//
// A [Network] that names hosts is served there as on a Linux without namespaces:
// the proxies are at the machine's loopback, each run's at ports of its own, and
// ask for the run's key. The profile lets TCP be connected to those two ports and
// to Loopback's, of both IPv4 and IPv6, which it cannot tell apart, and to nothing
// else. The trust bundle and the ssh-agent's socket are in the run's own directory,
// to be read. Two decisions:
//
//   - Listen, Capture and UDP take a network namespace, the relay of SSH a mount, and the
//     socket of gpg's agent a shorter path than HOME has: each is an UnsupportedError
//     that names the field, or a note where May names the network.
//   - trustd, which checks certificates for Go's and Swift's programs, fetches what a
//     certificate names from wherever that is: a way out. A network by name has it
//     only where May names the network, and the report lists the loss.
//
// A process that leaves the process group outlives the run with its profile, and so
// may reach the program that listens at the run's two ports later. Which of all this has been
// tried is in docs/seatbelt-on-a-mac.md: none of it on a Mac.
//
// # What a policy means
//
// [Allows] says it, act by act, with the field that decides. Tests hold the
// plans, what the kernel does, and the profiles for macOS against it.
//
// # Limits
//
// On systems other than Linux and macOS everything builds, and Start returns an
// error that wraps errors.ErrUnsupported. A bound that a Linux host cannot hold is an
// [UnsupportedError] from [New], unless Policy.May names it. A sandbox shares
// the host's kernel: it is no defence against a flaw in what the kernel offers
// to the tool, only a small surface for one.
//
// A UNIX socket that lies in a directory which the policy lets be written can be connected
// to: its path is granted. In one that can only be read, [New] covers those that it finds,
// where Landlock's ABI is below 9: one that is bound later, or in a container, is not
// found. A FIFO in what the policy lets be read alone can be opened for
// writing, too, if a directory around it can be written, a Private one included:
// that changes no file system, so a read-only mount lets it pass, and Landlock adds
// up what is granted around. What the command is given as an open file, it has: a
// regular file on its standard input can, on a host without Landlock, be opened
// anew for writing by the user who owns it.
package sandbox
