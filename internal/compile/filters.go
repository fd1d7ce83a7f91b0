package compile

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// refusesKeys reports whether the tool's filter is known to refuse all use of
// keys, as the default profile does, and noKeys in any other's place.
func (c *compilation) refusesKeys() bool {
	return c.Facts.Seccomp.Yes() && (c.defaultProfile() || c.closesKeys())
}

// closesKeys reports whether keys are refused besides the profile: those of the user's own keyrings are had by their numbers, in any namespace, by every process of
// that user (key_task_permission in security/keys/permission.c). A profile that allows keyctl by a rule has them all.
func (c *compilation) closesKeys() bool {
	return !c.open(policy.BoundPrivileges) && !c.root.Nest && c.Facts.Keyring.Yes() && !c.allowsKeys()
}

func (c *compilation) allowsKeys() bool {
	return slices.ContainsFunc(c.Policy.Syscalls.Rules, func(r seccomp.Rule) bool { return r.Action == seccomp.Allow && slices.Contains(r.Names, "keyctl") })
}

// defaultProfile reports whether the profile is the default one.
func (c *compilation) defaultProfile() bool {
	return c.Policy.Syscalls.IsZero() && !c.open(policy.BoundSyscalls)
}

// filters loads the tool's filters: the system call profile, without sockets where no namespace makes
// them harmless (that is of the network's bound, so it stays when system calls
// are not bounded), the policy's own, and the supervisor's, which is the last if the others let it be: the descriptor of its listener, which the tool's
// parent has, keeps those before it, too. Else the kernel frees them in the tool's end, which waits for that (bpf_prog_free; measured: 45 us).
func (c *compilation) filters() error {
	first := len(c.plan.Steps)
	if err := c.supervisor(); err != nil { // what it sees the profile need not refuse
		return err
	}
	others := len(c.plan.Steps)
	profile, err := c.profile()
	if err != nil {
		return err
	}
	if c.plan.Namespaces.PID && c.Facts.Seccomp.Yes() && !c.open(policy.BoundProcesses) { // without a pid namespace no tool sets limits by number
		program, err := noOthersLimits.Compile(c.Arch)
		if err != nil {
			return policy.SyscallsError(err)
		}
		c.plan.Limits = &plan.LoadFilter{Name: "limits of others", Program: program}
	}
	if profile.Len() > 0 {
		c.do(plan.LoadFilter{Name: "profile", Program: profile}, plan.Seccomp, "it allows least")
	}
	if err := c.checkLoads(profile); err != nil {
		return err
	}
	for i, p := range c.Policy.Programs {
		c.do(plan.LoadFilter{Name: fmt.Sprint(i), Program: p}, plan.Seccomp, "the policy's own")
	}
	if c.letsListen(profile) && !slices.ContainsFunc(c.Policy.Programs, func(p seccomp.Program) bool { return !c.letsListen(p) }) {
		supervisors := slices.Clone(c.plan.Steps[first:others])
		c.plan.Steps = append(slices.Delete(c.plan.Steps, first, others), supervisors...)
	}
	return nil
}

// checkLoads refuses a program that one before it, or the profile, does not let be loaded.
func (c *compilation) checkLoads(profile seccomp.Program) error {
	const setSeccomp, modeFilter = 22, 2 // PR_SET_SECCOMP, SECCOMP_MODE_FILTER
	call, err := seccomp.NewCall(c.Arch, "prctl", setSeccomp, modeFilter)
	if err != nil {
		return err
	}
	before := []seccomp.Program{profile}
	for i, p := range c.Policy.Programs {
		for _, b := range before {
			if action, err := b.Evaluate(call); b.Len() > 0 && (err != nil || action != seccomp.Allow) {
				return &policy.PolicyError{Field: errtext.Indexed("Programs", i), Problem: "cannot be loaded: the profile, or a program before it, does not allow prctl(2)", Remedy: "allow prctl there"}
			}
		}
		before = append(before, p)
	}
	return nil
}

// letsListen reports whether the supervisor's filter can be loaded where a program is in force.
func (c *compilation) letsListen(p seccomp.Program) bool {
	const setModeFilter = 1 // SECCOMP_SET_MODE_FILTER
	call, err := seccomp.NewCall(c.Arch, "seccomp", setModeFilter, supervisor.ListenerFlags)
	if err != nil || p.Len() == 0 {
		return err == nil
	}
	action, err := p.Evaluate(call)
	return err == nil && action == seccomp.Allow
}

// profile compiles the policy's profile, or the default one; empty: there is none, or this host has no filters, which refuse says.
func (c *compilation) profile() (program seccomp.Program, err error) {
	if !c.Facts.Seccomp.Yes() {
		return program, nil
	}
	profile, standIns := c.Policy.Syscalls, c.fallbackRules()
	off := c.open(policy.BoundSyscalls) || profile.IsOff()
	switch {
	case off && len(standIns) == 0:
		return program, nil
	case off:
		profile = seccomp.Filter{Default: seccomp.Allow, Unknown: seccomp.Errno(errNoSys)}
	case profile.IsZero():
		profile = seccomp.Default()
		if c.Policy.Nested {
			profile = profile.With(buildsSandboxes...)
		}
	}
	profile = profile.With(standIns...)
	if program, err = profile.Compile(c.Arch); err != nil {
		return program, policy.SyscallsError(err)
	}
	return program, c.checkExecve(program)
}

// checkExecve refuses a profile under which nothing can be started: the tool's
// own execve is made with the filter in force.
func (c *compilation) checkExecve(program seccomp.Program) error {
	call, err := seccomp.NewCall(c.Arch, "execve")
	if err != nil {
		return policy.SyscallsError(err)
	}
	action, err := program.Evaluate(call)
	if err != nil {
		return policy.SyscallsError(err)
	}
	if action != seccomp.Allow && action != seccomp.Log {
		return &policy.PolicyError{Field: "Syscalls", Value: action.String(), Problem: "is what becomes of execve, with which the tool itself starts", Remedy: `add a rule that allows "execve"`}
	}
	return nil
}

// holdsKeepers reports whether a filter keeps the tool from signalling the sandbox's own
// processes: where neither a pid namespace nor Landlock's scope (ABI 6) does. Without
// Landlock at all they could be traced, which no filter keeps from them alone; and a stage
// that has a Go runtime has threads, whose numbers are not known.
func (c *compilation) holdsKeepers() bool {
	return (!c.namespaced || c.sharesPIDs()) && !c.open(policy.BoundProcesses) && c.Facts.Seccomp.Yes() && c.Facts.Landlock.Yes() && c.Facts.Landlock.Value < scopeSince &&
		!c.Threads && c.Policy.Root == nil && !c.root.Nest && !c.open(policy.BoundFiles)
}

// keepers loads the filter that protects the stage, the keeper and init. A process of the
// same user needs no right but that for
//
//   - kill, tkill, tgkill, rt_sigqueueinfo and rt_tgsigqueueinfo, which take a number.
//     These processes have one thread each, whose number is the process's, and the numbers
//     are theirs as long as they live;
//   - kill of a group, or with -1 of all. The tool begins in the group of the stage and
//     init;
//   - pidfd_send_signal, to a pidfd that may come from pidfd_open, or be a directory of
//     /proc: ENOSYS, on which every caller falls back (os.Process.Signal does);
//   - the signal for input on a descriptor, which F_SETOWN sends to any process of the
//     user's (send_sigio in fs/fcntl.c): F_SETSIG may not make it SIGKILL or SIGSTOP. By
//     default it is SIGIO, which the stage forwards, and init and the keeper block;
//   - their limits, priorities, policies and processors: noOthers.
//
// What else takes a process (ptrace, process_vm_writev, pidfd_getfd, kcmp, most of
// /proc/PID, process_madvise) asks for the right to trace it, and Landlock refuses that
// towards a process outside of the tool's domain from ABI 1 on ("Ptrace restrictions" in
// Documentation/userspace-api/landlock.rst). A signal that a dying child sends is SIGCHLD
// once it is init's (reparent_leader in kernel/exit.c). The terminal sends none that init
// does not block and the stage does not catch.
func (c *compilation) keepers() error {
	if !c.holdsKeepers() {
		return nil
	}
	program, err := KeeperFilter().Compile(c.Arch)
	if err != nil {
		return policy.SyscallsError(err)
	}
	c.do(plan.LoadKeeperFilter{Program: program}, plan.Seccomp, "the tool cannot stop or kill what ends the run")
	return nil
}

// KeeperFilter is the filter by which a tool without a pid namespace cannot stop or kill the processes that end its run.
func KeeperFilter() seccomp.Filter {
	const everybody, setSig, sigKill, sigStop = 1<<32 - 1, 10, 9, 19
	f := seccomp.Filter{Default: seccomp.Allow, Unknown: seccomp.Allow}
	refuse := func(index uint8, value uint64, names ...string) {
		f.Rules = append(f.Rules, seccomp.Rule{Names: names, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: index, Value: value}}})
	}
	for _, p := range []plan.OwnProcess{plan.OwnStage, plan.OwnKeeper, plan.OwnInit} {
		refuse(0, p.Placeholder(), "kill", "tkill", "rt_sigqueueinfo")
		refuse(0, p.Placeholder(), "tgkill", "rt_tgsigqueueinfo")
		refuse(1, p.Placeholder(), "tgkill", "rt_tgsigqueueinfo")
	}
	refuse(0, plan.OwnGroup.Placeholder(), "kill")
	refuse(0, plan.OwnInitGroup.Placeholder(), "kill")
	refuse(0, plan.OwnKeeperGroup.Placeholder(), "kill")
	refuse(0, everybody, "kill")
	f.Rules = append(f.Rules, seccomp.Rule{Names: []string{"pidfd_send_signal"}, Action: seccomp.Errno(errNoSys)})
	for _, signal := range []uint64{sigKill, sigStop} {
		f.Rules = append(f.Rules, seccomp.Rule{Names: []string{"fcntl"}, Action: seccomp.Errno(errPerm),
			Args: []seccomp.Arg{{Index: 1, Value: setSig}, {Index: 2, Value: signal}}})
	}
	return f
}
