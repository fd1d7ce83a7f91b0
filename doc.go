// Package holdfast is the floor plan of Holdfast, which runs a tool as os/exec
// would, inside bounds that the kernel enforces and that are read back from it:
//
//	cmd := sandbox.Command("bash", "-c", script) // was exec.Command
//	out, err := cmd.CombinedOutput()
//	fmt.Println(cmd.Report()) // which bound held, by which mechanism
//
// It holds no code. Import package sandbox; landlock, seccomp and rlimit are of
// use alone.
//
// # One command's way through the house
//
//	harness --vfork+exec--> stage --clone(new namespaces)--> init (pid 1) --vfork--> tool
//	   |                      |                                |                      |
//	   | compile(Policy,Host) | runs ready-made system calls,  | mounts, lo up,       | rlimits, Landlock,
//	   | -> Plan, or error    | then minds init: deadline,     | listeners -> harness,| guard, seccomp,
//	   | -> a sealed program  | signals, exit status           | capabilities away,   | execve
//	   | gateway: serves the  |                                | Landlock, guard,     |
//	   |   tool's network     |                                | evidence, reaping    |
//
// The stage is the harness's own executable, without its Go runtime: what is
// executed is an image in memory of a few hundred bytes, which maps the harness's
// text and jumps into internal/stage/child. Where a host executes no such image,
// the harness's file itself is executed, and the same code runs in an early init.
//
// Follow a command in three steps: [sandbox.Cmd.Start] is os/exec's, and in its middle
// run.enter of sandbox/run_linux.go puts the program in; sandbox/compile.go has
// decided every step of it, in order, which internal/stage/compile_linux.go has
// made into system calls; internal/stage/child carries them out. The way back,
// from the kernel's answers to the [sandbox.Report], is sandbox/evidence.go.
//
// A tool whose policy names hosts speaks to listeners on its own loopback. Init has
// made them in the empty network namespace and passed them up;
// sandbox/run_network_linux.go has them served by internal/egress, in the harness,
// from the moment the tool is held until the run's end.
//
// On macOS the stage executes sandbox-exec with a profile made of the same policy;
// sandbox/seatbelt.go draws that way.
//
// # Rooms
//
//	sandbox/               front door: Command, Cmd, Policy, Sandbox, Report; usually the only import
//	sandbox/sandboxtest/   commands inside a sandbox from within go test
//	sandbox/capture/       connections of tools that know no proxy, by a TUN device; links a network stack
//	sandbox/sbpl/          profiles of macOS's sandbox-exec, as policies that Linux holds
//	landlock/              rulesets as data, what each ABI knows, pure downgrade; of use alone
//	landlock/process/      a process restricts itself, all its threads, by way of go-landlock
//	seccomp/               filters as data, their compiler and evaluator, the default profile; of use alone
//	rlimit/                resource limits as data; of use alone
//	internal/host/         what is known of the machine: yes, no, could not tell
//	internal/plan/         the plan: what will be done, step by step, as plain data
//	internal/stage/        the harness's half: plan to program, the image, the control socket
//	internal/stage/child/  the stage's half: the early hook, the stage, init, the tool before its execve
//	internal/stage/guard/  the supervisor in init that keeps protected names from being written
//	internal/stage/wire/   the layout that both halves share
//	internal/seatbelt/     macOS sandbox profiles, read and evaluated, on any system
//	internal/seatbelt/emit/ a policy's grants as such a profile, every path a parameter
//	internal/egress/       the way out: allow-list by name, HTTP and SOCKS proxies, secrets, limits, events
//	internal/egress/agent/ filters between a tool and the ssh and gpg agents
//	internal/sys/          raw system calls and the kernel's constants
//	internal/kerneltest/   tests in child processes that lack a feature or a privilege
//	internal/gitobeyed/    the files in a tree that git obeys by a repository's configuration
//	internal/gitattack/    a generator of attacks on the rules for git, and their observer
//	internal/house/        tests of the walls between these rooms
//	internal/bench/        what a sandbox costs: a program that measures and prints tables
//	examples/              programs on the public API alone
//
// Imports run one way: examples, sandbox, stage, plan, then landlock, seccomp
// and rlimit, which do not know each other, then sys. A test holds the tree
// above and these walls against the code.
//
// [sandbox.Report]: https://pkg.go.dev/github.com/holdfast-dev/holdfast/sandbox#Report
// [sandbox.Cmd.Start]: https://pkg.go.dev/github.com/holdfast-dev/holdfast/sandbox#Cmd.Start
package holdfast
