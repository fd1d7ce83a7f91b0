// Package policy has what a tool may touch, as plain data, and says what is wrong with
// it:
//
//	p := policy.Policy{
//		Files:   policy.Files{Read: []string{"/usr"}, Write: []string{"/srv/project"}},
//		Network: policy.Network{Hosts: []string{"packages.example.com:443"}},
//	}
//	s, err := sandbox.New(p)
//
// Package sandbox has the same types under the same names where most policies need
// them, sandbox.Policy among them, and presets to start from.
//
// # Limits
//
// Nothing here looks at the host: that a path does not exist, or that the kernel
// cannot hold a bound, sandbox.New says.
package policy
