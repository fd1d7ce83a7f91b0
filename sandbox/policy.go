package sandbox

import (
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// What most policies are written with. Package policy documents each, and has the
// rest: credentials, request rules, protected names. Package rootfs has what builds
// a root entry by entry.
type (
	// A Policy says what a tool may touch. Its zero value allows nothing.
	Policy = policy.Policy
	// Files says which files exist for the tool.
	Files = policy.Files
	// Network says what the tool can connect to.
	Network = policy.Network
	// Env says which variables of the harness's environment the tool gets.
	Env = policy.Env
	// Limits bounds what the tool can consume.
	Limits = policy.Limits
	// A Bound is one thing that a sandbox bounds, as [policy.BoundFiles].
	Bound = policy.Bound
	// A PolicyError says which field of a [Policy] cannot be, why, and the remedy.
	PolicyError = policy.PolicyError
	// An UnsupportedError is a bound that this host cannot hold. It wraps [errors.ErrUnsupported]. Where several
	// bounds are concerned, [New]'s error joins one for each.
	UnsupportedError = policy.UnsupportedError
)

type (
	// Host is what is known of this machine; see [Probe].
	Host = host.Facts
	// Fact is one thing known of the host, with its reason and remedy.
	Fact = host.Fact
)
