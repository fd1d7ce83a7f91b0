package compile

import (
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// mostNested is how many namespaces of each kind a tool may make under Policy.Nested. One of the network takes the kernel
// some 100 KB, and one that has ended counts until the kernel has taken it down.
const mostNested = 128

// nestedConflict finds what of the files does not go with Policy.Nested; roots are the directories below which names could be
// changed. The tool then has rights in user namespaces below init's second, so the mounts that
// init has made are locked together in any mount namespace of its own (MNT_LOCKED, mount_namespaces(7)): none comes off alone, none that is
// read-only becomes writable, and no bind shows what lies below one. Four things do not follow from that:
//
//   - Landlock refuses every mount to a domain that handles files (hook_sb_mount in security/landlock/fs.c), so the ruleset
//     on files is left out. A domain with scopes alone does not refuse them, and stays.
//   - The supervisor goes by paths in init's mount namespace. There must be nothing for it to hold.
//   - A directory on which a mount lies in another namespace can be renamed and removed, with the mount (vfs_rename and
//     detach_mounts in the kernel, since Linux 3.18): out of a tree that can be changed, into one that has another mount, whatever is
//     hidden or read-only in it becomes visible. In such trees there may be no rules.
//   - A cgroup namespace of the tool's own would let it mount cgroup2 with the harness's own cgroup as the root, and kill or
//     freeze the harness where the user may write there. The quota on those namespaces is used up.
//
// Uid 0 is refused when a command starts (Run.enter in package runner): no map of 0 can be written without CAP_SETFCAP (commit db2e718a4798), with which it could give
// files on the host capabilities, and /proc/sys is root's.
func nestedConflict(tree resolve.Tree, roots []string, f policy.Files) error {
	if len(roots) > 0 && len(f.ProtectedPatterns()) > 0 {
		return &policy.PolicyError{Field: "Nested", Problem: "leaves no way to protect names (Files.Protect) in what the tool can write", Remedy: "list the trees in Files.CopyOnWrite instead of Files.Write, or set Files.Protect.Off"}
	}
	for _, e := range tree.Entries {
		if e.Path == "/" && e.Kind == pathrule.Write {
			return &policy.PolicyError{Field: "Nested", Value: "/", Problem: "cannot go with a root that can be written", Remedy: "list the directories in Files.Write"}
		}
		if around, ok := changeable(tree, e); ok {
			return &policy.PolicyError{Field: "Nested", Value: e.Path, Problem: "has a rule of its own inside " + around + ", which can be changed: a tool with mounts of its own can move it out of the rule",
				Remedy: "leave that rule out, or show " + around + " in Files.Read"}
		}
	}
	return nil
}

// changeable returns a tree around e in which the tool can rename what lies at e's path, where e's rule says more than that tree's.
// What covers a copy-on-write tree covers the host's files in it; what else has a rule there is either no secret or no change of the host's.
func changeable(tree resolve.Tree, e resolve.Entry) (string, bool) {
	covers := e.Kind == pathrule.Hide || e.Kind == pathrule.Private || e.Kind == pathrule.Make
	for dir := e.Path; dir != "/"; {
		dir = path.Dir(dir)
		around, _ := tree.Find(dir)
		if around.Kind == pathrule.Write && e.Kind != pathrule.Write || around.Kind == pathrule.CopyOnWrite && covers {
			return dir, true
		}
	}
	return "", false
}

// nestedNotes says for each bound what holds in the place of what is left out, and what is weaker.
func nestedNotes(roots []string) map[policy.Bound][]string {
	notes := map[policy.Bound][]string{
		policy.BoundFiles: {
			"Nested: Landlock does not bound files, since it would refuse every mount; the kernel locks the sandbox's mounts together in the tool's own mount namespaces (MNT_LOCKED)",
			"Nested: /proc has no covers: the machine's interrupt counters and the names of the user's keys can be read",
			"Nested: a regular file that the command is given open to read can be opened anew for writing by the user who owns it",
			"Nested: what another sandbox has sent as a descriptor can be changed as its mount lets it: names that are protected there are not protected here",
		},
		policy.BoundSyscalls:  {"Nested: user, mount, pid, ipc, uts and network namespaces and mounts can be made; the kernel's code for mounts, network devices and traffic control can be reached"},
		policy.BoundResources: {"Nested: a tmpfs that the tool mounts does not count in Files.PrivateBytes; at most 128 namespaces of each kind"},
	}
	if len(roots) > 0 {
		notes[policy.BoundFiles] = append(notes[policy.BoundFiles], "Nested: no name is protected in "+strings.Join(roots, ", ")+"; the host's own mounts in it come off when the tool removes the directories that they are on")
		notes[policy.BoundSyscalls] = append(notes[policy.BoundSyscalls], "Nested: openat2 is refused, since a directory of the host can be written: Holdfast does not start inside")
	}
	return notes
}

// buildsSandboxes is what the default profile allows under Policy.Nested: the calls that make namespaces and mounts, which the
// kernel lets a process make in user namespaces of its own. clone3 stays absent, and with it what no filter sees.
var buildsSandboxes = append([]seccomp.Rule{
	allowed("processes in namespaces of the tool's own", "clone", "unshare", "setns"),
	allowed("mounts in a mount namespace of the tool's own",
		"mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr"),
	allowed("the names of a uts namespace of the tool's own", "sethostname", "setdomainname"),
}, noTables...)

func allowed(reason string, names ...string) seccomp.Rule {
	return seccomp.Rule{Names: names, Action: seccomp.Allow, Reason: reason}
}

// noTables keep firewall rules of the old kind from being loaded into a network namespace of the tool's own, by which the kernel was
// taken over (CVE-2021-22555). Those of the new kind take a netlink socket that the profile refuses.
var noTables = []seccomp.Rule{
	loadTable(0, 64), loadTable(0, 65), // SOL_IP: IPT_SO_SET_REPLACE and IPT_SO_SET_ADD_COUNTERS, linux/netfilter_ipv4/ip_tables.h
	loadTable(0, 96), loadTable(0, 97), // the same of arp_tables.h
	loadTable(0, 128), loadTable(0, 129), // and of netfilter_bridge/ebtables.h
	loadTable(41, 64), loadTable(41, 65), // SOL_IPV6: of netfilter_ipv6/ip6_tables.h
}

func loadTable(level, option uint64) seccomp.Rule {
	return seccomp.Rule{Names: []string{"setsockopt"}, Action: seccomp.Errno(seccomp.EPERM), Args: []seccomp.Arg{{Index: 1, Value: level}, {Index: 2, Value: option}},
		Reason: "loads firewall tables into the kernel"}
}
