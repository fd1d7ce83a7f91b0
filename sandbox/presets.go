package sandbox

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/presets"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ReadOnly returns a policy under which a tool can read the system, the
// toolchains on PATH and dir, and write nothing but a private /tmp, /var/tmp and
// home, which are empty at each start. It has no network. Secrets, other
// people's files and the host's sockets are not there; see [Workspace], which
// differs in what dir and the build caches allow, for all that and for how a bad
// dir is reported.
func ReadOnly(dir string) Policy {
	return presets.Build(dir, false)
}

// Workspace returns the policy of the default sandbox: dir can be written, but
// for [policy.ProtectedNames], and so can a private /tmp, /var/tmp and home. The system
// can be read (/usr, /etc, /opt, the databases of installed packages and their like, without their secrets), and so
// can the directories on PATH with the toolchains that they belong to. Build
// caches (Go, cargo, npm, pip and others) start with what the host's hold; what
// the tool adds to them is gone afterwards. There is no network.
//
// HOME inside has the path that it has outside; it is empty but for toolchains,
// caches, dir if it lies there, and a generated .gitconfig with the user's
// identity. A harness without a usable HOME gives the tool /home/tool.
// Variables pass if they are no secret (see [policy.SecretNames]).
//
// The tool of a harness that runs as root has root's uid. What other users cannot read
// in /etc, /opt and /usr/local is hidden from it, but for the programs that PATH leads to;
// in the latter two that is looked for among the 2000 entries that lie highest, and
// not below a language's own tree or in directories of packages. A note in the
// report says where the search ended, if it did.
//
// What the policy grants is what exists on this host when Workspace is called;
// it looks at the environment, PATH and the user's configuration, and at
// nothing in dir, whose files a tool may have written. A relative dir is taken
// from the present working directory. If dir is a linked worktree or a submodule of git,
// [New] grants its repository too; see [Files] Worktrees, which a caller empties to switch that off.
//
// On macOS May lists the bounds that nothing there holds as it should be held:
// files, processes and system calls. The report says what is lost of them.
//
// Workspace does not fail. A dir that cannot be a workspace stands in the policy, in Write and in
// Hide, and [New] returns a [*PolicyError] that says why: it does not exist, contains more than one
// project, lies where programs outside execute or obey what they find, or is reached by a symbolic
// link that a tool can have made. docs/getting-started.md has the list.
func Workspace(dir string) Policy {
	return presets.Build(dir, true)
}

// WorkspaceNet returns [Workspace] with a network of hosts, in the notation of
// [policy.Network]'s Hosts: what a tool needs that fetches packages, say
// "packages.example.com" or "*.example.org". Without hosts it is Workspace.
func WorkspaceNet(dir string, hosts ...string) Policy {
	p := presets.Build(dir, true)
	p.Network.Hosts = slices.Clone(hosts)
	return p
}

// Registries returns "host:port" entries for [Network] Hosts: the registries that the tools "go", "npm", "pip",
// "cargo" and "apt" of this machine are set to use. It runs those of PATH, outside of a sandbox, for ten seconds at most, and
// neither runs nor reads what lies in the working directory. A tool that is not there, is not known, or does not say its
// registry is a [*PolicyError] that names the setting (each one, joined). Hosts to which a registry's answers lead are no setting.
func Registries(tools ...string) ([]string, error) {
	return presets.Registries(tools...)
}

// Unconfined returns a policy that bounds nothing: every bound is open, and the
// report says so. The tool's processes still end with it.
func Unconfined() Policy {
	return Policy{
		Env: Env{Pass: []string{"*"}},
		Open: []Bound{
			policy.BoundFiles, policy.BoundNetwork, policy.BoundProcesses, policy.BoundSyscalls, policy.BoundPrivileges, policy.BoundResources, policy.BoundEnvironment, policy.BoundTime,
		},
	}
}
