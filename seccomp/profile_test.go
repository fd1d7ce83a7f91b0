package seccomp

import (
	"slices"
	"strings"
	"testing"
)

var profiles = map[string]func() Filter{"default": Default, "strict": Strict, "off": Off}

func TestEveryProfileIsValidAndGivesAReasonForEveryRule(t *testing.T) {
	for name, profile := range profiles {
		if err := profile().Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, r := range profile().Rules {
			if len(r.Reason) < 10 {
				t.Errorf("%s: rule %d, %v, has the reason %q", name, i, r.Names, r.Reason)
			}
		}
	}
}

func TestDefaultAndStrictDecideEverySyscallInSomeRule(t *testing.T) {
	for _, name := range []string{"default", "strict"} {
		f := profiles[name]()
		for _, e := range table {
			last := slices.IndexFunc(f.Rules, func(r Rule) bool { return len(r.Args) == 0 && slices.Contains(r.Names, e.name) })
			if last < 0 {
				t.Errorf("%s leaves %s to its default action", name, e.name)
			}
		}
	}
}

func TestChangingAProfileThatAFunctionReturnedChangesNoOther(t *testing.T) {
	for name, profile := range profiles {
		f := profile()
		for i := range f.Rules {
			f.Rules[i].Action = Allow
			clear(f.Rules[i].Names)
			clear(f.Rules[i].Args)
		}
		if err := profile().Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The calls that Docker's default profile (github.com/moby/profiles, seccomp/default.json,
// June 2026) does not allow to a container without capabilities, on a kernel of 4.8 or later:
// on both architectures, and on amd64 alone.
const (
	dockerDeniesBoth = `acct add_key bpf chroot clock_settime clone3 delete_module fanotify_init file_getattr file_setattr finit_module
		fsconfig fsmount fsopen fspick get_mempolicy init_module io_uring_enter io_uring_register io_uring_setup kcmp kexec_file_load kexec_load
		keyctl listns lookup_dcookie lsm_get_self_attr lsm_list_modules lsm_set_self_attr mbind migrate_pages mount mount_setattr move_mount
		move_pages nfsservctl open_by_handle_at open_tree open_tree_attr perf_event_open pidfd_getfd pivot_root process_madvise quotactl
		quotactl_fd reboot request_key rseq_slice_yield set_mempolicy set_mempolicy_home_node setdomainname sethostname setns settimeofday
		swapoff swapon syslog umount2 unshare userfaultfd vhangup`
	dockerDeniesAMD64 = `_sysctl afs_syscall create_module get_kernel_syms getpmsg ioperm iopl putpmsg query_module security sysfs tuxcall
		uprobe uselib ustat vserver`
)

func TestWhatDockerDeniesToAContainerWithoutCapabilitiesDefaultAndStrictDeny(t *testing.T) {
	for _, a := range arches {
		names := strings.Fields(dockerDeniesBoth)
		if a == AMD64 {
			names = append(names, strings.Fields(dockerDeniesAMD64)...)
		}
		if want := map[Arch]int{AMD64: 77, ARM64: 61}[a]; len(names) != want {
			t.Errorf("%d names for %v, want %d", len(names), a, want)
		}
		for _, profile := range []string{"default", "strict"} {
			p := mustCompile(t, profiles[profile](), a)
			for _, name := range names {
				for _, v := range []uint64{0, 1, 1<<64 - 1} {
					if got := verdict(t, p, mustCall(t, a, name, v, v, v, v, v, v)); !refuses(got) {
						t.Errorf("%s, %v: %s(%#x ...): %v", profile, a, name, v, got)
					}
				}
			}
		}
	}
}

// Docker's rules with argument checks: socket by family, personality by value, clone by flags.
func TestWhatDockerDeniesByArgumentDefaultDenies(t *testing.T) {
	dockerFamilies := map[uint64]bool{} // families that Docker allows
	for _, f := range []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 21, 22, 24, 26, 27, 28, 29, 30, 31, 32, 33, 35, 36, 39, 41, 42, 43, 44, 45} {
		dockerFamilies[f] = true
	}
	dockerPersonalities := []uint64{0, 8, 0x20000, 0x20008, 0xffffffff, 0x40000} // the last is not Docker's: see personalityRules
	for _, a := range arches {
		p := mustCompile(t, Default(), a)
		for family := range uint64(64) {
			for kind := range uint64(16) {
				if got := verdict(t, p, mustCall(t, a, "socket", family, kind, 0)); got == Allow && !dockerFamilies[family] {
					t.Errorf("%v: socket(%d, %d, 0): %v", a, family, kind, got)
				}
			}
		}
		for bit := range 64 {
			v := uint64(1) << bit
			if got := verdict(t, p, mustCall(t, a, "personality", v)); got == Allow && !slices.Contains(dockerPersonalities, v&0xffffffff) {
				t.Errorf("%v: personality(%#x): %v", a, v, got)
			}
			if got := verdict(t, p, mustCall(t, a, "clone", v)); got == Allow && v&2114060288 != 0 {
				t.Errorf("%v: clone(%#x): %v", a, v, got)
			}
		}
	}
}

// refuses says whether a call with this fate is not made.
func refuses(a Action) bool { return a&actionBits == retErrno && a != Errno(0) || a == KillProcess }

func TestStrictAllowsNothingThatDefaultRefuses(t *testing.T) {
	for _, a := range arches {
		d, s := mustCompile(t, Default(), a), mustCompile(t, Strict(), a)
		for nr := range uint32(600) {
			for _, args := range [][6]uint64{{}, {1, 1, 1}, {2, 1, 6}, {16, 3}, {40, 1}, {0x10000000, 0x5412}, {22, 0x541c}} {
				c := Call{Arch: a, Nr: nr, Args: args}
				if verdict(t, s, c) == Allow && verdict(t, d, c) != Allow {
					t.Errorf("%v", c)
				}
			}
		}
	}
}

func TestOffRefusesNothingOfTheNativeArchitecture(t *testing.T) {
	if !Off().IsOff() || Default().IsOff() || Strict().IsOff() || (Filter{}).IsOff() {
		t.Error("IsOff does not know Off")
	}
	if off := Off().With(refuse(EPERM, "one rule", "ptrace")); off.IsOff() {
		t.Error("Off with a rule is not off")
	}
	if (Filter{Default: Allow, Unknown: Errno(ENOSYS)}).IsOff() {
		t.Error("a filter that refuses unknown numbers is not off")
	}
	for _, a := range arches {
		p := mustCompile(t, Off(), a)
		for nr := range uint32(2000) {
			if got := verdict(t, p, Call{Arch: a, Nr: nr}); got != Allow {
				t.Errorf("%v %d: %v", a, nr, got)
			}
		}
	}
}
