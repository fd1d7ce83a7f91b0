// Package holdfast is the floor plan of Holdfast, which runs a tool as os/exec
// would, inside bounds that the kernel enforces and that are read back from it:
//
//	cmd := sandbox.Command("bash", "-c", script) // was exec.Command
//	out, err := cmd.CombinedOutput()
//	fmt.Println(cmd.Report()) // which bound held, by which mechanism
//
// It holds no code. Import package sandbox. Packages landlock, seccomp and rlimit can be used
// alone.
//
// # The way of one command
//
//	harness --vfork+exec--> stage --clone(new namespaces)--> init (pid 1) --vfork--> tool
//	   |                      |                                |                      |
//	   | compile(Policy,Host) | runs ready-made system calls,  | mounts, lo up,       | Landlock, rlimits,
//	   | -> Plan, or error    | then minds init: deadline,     | listeners -> harness,| seccomp, supervisor's
//	   | -> a sealed program  | signals, exit status           | capabilities dropped,| filter,
//	   | proxy: serves the    |                                | Landlock, supervisor,| execve
//	   |   tool's network     |                                | evidence, reaping    |
//
// The stage is the harness's own executable, without its Go runtime: a small ELF file in
// memory, the trampoline of internal/stage/launch, maps the harness's text and jumps into package internal/stage/child. On a
// host that executes no such file the harness's own is executed, and the same
// code runs before the program's other packages are initialised.
//
// The way in three steps:
//
//  1. sandbox.Cmd.Start calls runner.Run.Start, and that Start of the exec.Cmd. Its Path is the
//     stage's since it was made, and its context is the Run: os/exec asks that whether it is done
//     before it reads Env, Dir, ExtraFiles and SysProcAttr. In that question internal/runner checks
//     the command, and puts a sealed program and the control socket among its descriptors and the
//     stage's environment in the place of the tool's.
//  2. What the program does was decided before, by sandbox.New: internal/compile, a pure function, made an
//     internal/plan.Plan of the policy and the host's facts, step by step and in order
//     (Sandbox.Explain prints it), and internal/stage.Compile made system calls of it.
//  3. internal/stage/child carries them out: each step says whether stage, init or the tool's own
//     process takes it. The tool's process executes the tool last.
//
// The way back: init reads what the kernel says of the tool's process and sends the
// records up the control socket; internal/runner reads them as evidence of the plan's
// mechanisms, and package sandbox makes the [sandbox.Report] of that.
//
// Three ways branch off. A tool whose policy names hosts speaks to listeners on its own loopback,
// which init has made in the empty network namespace and passed up: internal/runner serves them,
// in the harness, by internal/proxy, until the run's end. A call that makes, opens for writing or changes a name
// stops in the kernel (seccomp_unotify(2)), and internal/supervisor, in init (in a session's command: in its
// warden), carries it out or refuses it. In a session (Sandbox.Open) init starts no tool: each command's stage hands its
// program to init by a socket, and init forks a warden, which starts the tool, reads its evidence and is its supervisor. See session_linux.go of
// internal/runner, internal/stage and internal/stage/child, and warden_linux.go there.
//
// On macOS the stage executes sandbox-exec with a profile that internal/seatbelt/emit makes of the
// same policy.
//
// docs/how-it-works.md has the same with a plan as it is printed, and the reasons for the order.
//
// # Rooms
//
//	sandbox/               front door: Command, Cmd, Policy, Sandbox, Session, Report; usually the only import
//	sandbox/policy/        Policy, Files, Network, Env, Limits: plain data, its validation, PolicyError
//	sandbox/inside/        the files of a session, read and written inside it: the server there, the harness's connections to it, by which descriptors come back, Open, Glob, CopyIn, fs.FS
//	sandbox/rootfs/        explicit roots, entry by entry, as bubblewrap's options build them: data of Policy.Root
//	sandbox/sandboxtest/   run commands in a sandbox from within go test
//	sandbox/capture/       connections of tools that know no proxy, by a TUN device; links a network stack, fed with packets and polled
//	sandbox/sbpl/          profiles of macOS's sandbox-exec, as policies that Linux holds: asks internal/seatbelt what each operation may, path by path
//	landlock/              rulesets as data, what each ABI knows, pure downgrade; usable alone
//	landlock/process/      a process restricts itself, all its threads, by way of go-landlock
//	seccomp/               filters as data, their compiler and evaluator, tables of system calls, the default profile with its rules on arguments; usable alone
//	rlimit/                resource limits as data; usable alone
//	internal/compile/      policy and facts about the host to the plan, or what the host cannot hold; the filters fitted to both; pure
//	internal/darwin/       which bounds of a policy macOS holds, by which grants of a profile, and sandbox-exec's arguments; pure
//	internal/verdict/      whether a policy allows an access, and which field decides; explains, guards nothing
//	internal/presets/      what this machine has (toolchains, caches, settings of git, places of secrets), as a policy
//	internal/trust/        places in which the harness follows links and whose programs it executes: the system's, and the table of toolchains; the runner of such programs
//	internal/resolve/      paths of a policy and of an explicit root to canonical entries, repositories of Files.Worktrees to grants; reads names and links
//	internal/runner/       the life of one command: how it enters, its network (proxies, ports, agents, capture, hosts that change), evidence, end; why a start failed; what was denied, as the supervisor, the proxy and macOS's log tell it; sessions, what listens in them, addresses of loopback
//	internal/protected/    the table of names that programs outside obey (.git/hooks, .bashrc, .nvimrc ...), and which program obeys each
//	internal/pathrule/     paths of a policy as text: kinds of rules, what may stand where
//	internal/output/       what a session's commands have printed: kept to a bound, searched while they run
//	internal/callback/     calls of the policy's functions (Decide, Lookup, Observe): deadlines, panics, equal questions, verdicts that last
//	internal/errtext/      pieces of error texts; foreign text made printable
//	internal/host/         facts about the machine: yes, no, could not tell
//	internal/plan/         the plan: what will be done, step by step, as plain data
//	internal/function/     functions of this program, started anew as tools
//	internal/stage/        the harness's half: plan to system calls, encoded as a program; the control socket; connections dialled for what runs inside
//	internal/stage/child/  the stage's half, without Go's runtime: the early hook, the stage, init, wardens, the tool before its execve; paths and messages made in buffers of their own
//	internal/supervisor/   in init, without Go's runtime: rules encoded by the harness; carries out or refuses the calls that its filter stops (opens for writing, names, connects); walks paths, looks into directories
//	internal/supervisor/gittext/ configurations and other texts that git obeys: which lines are harmless
//	internal/stage/launch/ how a stage is executed: the trampoline (an ELF file made in memory), or the harness's own file; its descriptors
//	internal/stage/wire/   the layout that both halves share
//	internal/seatbelt/     macOS sandbox profiles: parsed, with their macros and regular expressions, and evaluated, within limits, on any system
//	internal/seatbelt/emit/ macOS sandbox profiles: written, of a policy's grants; path patterns, every path a parameter
//	internal/proxy/        the way out: allow-list by name, HTTP and SOCKS proxies, TLS (the client's hello read, certificates made), waits for a first byte, secrets put in, limits on connections and bytes, events
//	internal/proxy/agent/  filters between a tool and the ssh and gpg agents
//	internal/proxy/clientenv/ environment, ssh configuration and relay by which tools find the proxy
//	internal/proxy/hostrules/ hosts, allow-lists and deny-lists; which addresses are special; the kernel's route to an address
//	internal/proxy/redact/ secrets found in what servers send (status line, headers, body), in every encoding (escapes, base64, UTF-16 ...), and taken out
//	internal/sys/          raw system calls, and constants of the kernel's for what runs without Go's runtime
//	internal/kerneltest/   tests in child processes that lack a feature or a privilege, taken away by filters and credentials
//	internal/fixture/      for tests of several packages: trees of files, made-up hosts, servers that say a secret in every spelling, checks of errors
//	internal/gitobeyed/    the files in a tree that git obeys by a repository's configuration, searched for by New, in the harness
//	internal/regularfile/  opens regular files at paths of a tool's choice: no device, no FIFO, nothing of procfs
//	internal/gitattack/    tests: a generator of attacks on the rules for git, and their observer
//	internal/commandtest/  tests: commands by sandbox.Command and by exec.Command, compared; what they leave behind
//	internal/tooltest/     tests: the tools that agents use, in the default sandbox; what the pages promise, where users live
//	internal/archtest/     tests of the walls between these rooms
//	docs/hosts/            files for container runtimes, systemd and AppArmor, embedded for the doctor
//	internal/hosttest/     hosts: a program that makes containers and virtual machines with other settings, runs the library and attacks in them, and prints a table
//	internal/bench/        what a sandbox costs, beside other programs (bubblewrap, docker, slirp4netns ...): a program that measures and prints tables
//	examples/              programs on the public API alone: run, bwrap (bubblewrap's command line, with its status), sandbox-exec, quickstart, netpolicy (servers and clients of each kind), shell (an interpreter in Go) ...
//
// Imports run one way: examples; sandbox; presets, resolve, compile, verdict, darwin and runner;
// proxy, which takes the policy's types of a network as they are; policy and rootfs, stage and supervisor, plan; then landlock, seccomp and rlimit, which
// do not know each other; then sys. Policy, rootfs, compile and verdict look at no host. A test holds the
// tree above and these walls against the code.
//
// [sandbox.Report]: https://pkg.go.dev/github.com/holdfast-dev/holdfast/sandbox#Report
package holdfast
