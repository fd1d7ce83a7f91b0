package policy

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/rlimit"
)

// Clone returns a copy that shares nothing with p, so that a policy given to New
// is immutable.
func (p Policy) Clone() Policy {
	f := &p.Files
	for _, list := range []*[]string{&f.Read, &f.Write, &f.Hide, &f.HideNames, &f.Private, &f.MayShare, &f.CopyOnWrite, &f.Worktrees, &f.Protect.Add, &f.Protect.Except, &p.Env.Pass} {
		*list = slices.Clone(*list)
	}
	f.Make, f.Found = slices.Clone(f.Make), maps.Clone(f.Found)
	p.Programs = slices.Clone(p.Programs)
	if p.Root != nil {
		root := p.Root.Clone()
		p.Root = &root
	}
	p.Network = p.Network.clone()
	p.Env.Set = maps.Clone(p.Env.Set)
	p.Limits.Rlimits = p.Limits.Rlimits.Or(rlimit.Limits{}) // a copy; see there
	p.Syscalls.Rules = slices.Clone(p.Syscalls.Rules)
	for i := range p.Syscalls.Rules {
		r := &p.Syscalls.Rules[i]
		r.Names, r.Args = slices.Clone(r.Names), slices.Clone(r.Args)
	}
	p.May, p.Open, p.Notes = slices.Clone(p.May), slices.Clone(p.Open), slices.Clone(p.Notes)
	return p
}

func (n Network) clone() Network {
	for _, list := range []*[]string{&n.Hosts, &n.UDP, &n.Deny, &n.Unix} {
		*list = slices.Clone(*list)
	}
	n.Loopback, n.Listen = slices.Clone(n.Loopback), slices.Clone(n.Listen)
	n.Credentials, n.Requests = slices.Clone(n.Credentials), slices.Clone(n.Requests)
	for i := range n.Credentials {
		n.Credentials[i].Hosts = slices.Clone(n.Credentials[i].Hosts)
	}
	for i := range n.Requests {
		r := &n.Requests[i]
		r.Methods, r.Paths = slices.Clone(r.Methods), slices.Clone(r.Paths)
	}
	return n
}
