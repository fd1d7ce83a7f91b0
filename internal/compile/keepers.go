package compile

import (
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

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
