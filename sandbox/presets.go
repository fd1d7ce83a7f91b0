package sandbox

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/presets"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ReadOnly is [Workspace] but that dir is only read; it has no build caches.
func ReadOnly(dir string) Policy {
	return presets.Build(dir, false)
}

// Workspace returns the policy of the default sandbox: dir can be written, but for [policy.ProtectedNames], and so can
// a private /tmp, /var/tmp and HOME, and copies of build caches. The system and the toolchains on PATH can be read,
// without secrets. Variables pass if they are no secret ([policy.SecretNames]). There is no network.
// docs/getting-started.md has the rest, as what it is for root and on macOS.
//
// It looks at this host when it is called, and at nothing in dir, which a tool may have written. It does not fail: of
// a dir that cannot be a workspace [New] returns a [*PolicyError] that says why.
func Workspace(dir string) Policy {
	return presets.Build(dir, true)
}

// WorkspaceNet is [Workspace] with a network of hosts, in the notation of
// [policy.Network]'s Hosts, say "packages.example.com" or "*.example.org".
func WorkspaceNet(dir string, hosts ...string) Policy {
	p := presets.Build(dir, true)
	p.Network.Hosts = slices.Clone(hosts)
	return p
}

// Registries returns entries for [Network] Hosts: the registries of "go", "npm", "pip" and "cargo", by the variables
// of the environment, and by the tools' defaults without them. It executes nothing and reads no file. Another tool, or
// a variable without a host, is a [*PolicyError] (all are joined). docs/network.md has the hosts to name for other
// tools.
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
