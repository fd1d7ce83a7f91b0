package plan

import "strings"

// Namespaces says which new namespaces init is cloned into. The zero value is
// none.
type Namespaces struct {
	User, Mount, PID, IPC, UTS, Cgroup, Net bool
}

// fields pairs each field with its mechanism.
func (n *Namespaces) fields() []struct {
	set *bool
	m   Mechanism
} {
	return []struct {
		set *bool
		m   Mechanism
	}{
		{&n.User, UserNamespace}, {&n.Mount, MountNamespace}, {&n.PID, PIDNamespace}, {&n.IPC, IPCNamespace},
		{&n.UTS, UTSNamespace}, {&n.Cgroup, CgroupNamespace}, {&n.Net, NetworkNamespace},
	}
}

// Mechanisms returns the mechanisms that the set namespaces are.
func (n Namespaces) Mechanisms() []Mechanism {
	var list []Mechanism
	for _, f := range n.fields() {
		if *f.set {
			list = append(list, f.m)
		}
	}
	return list
}

// String returns the names of the set namespaces, separated by spaces.
func (n Namespaces) String() string {
	var words []string
	for _, m := range n.Mechanisms() {
		words = append(words, strings.TrimSuffix(string(m), " namespace"))
	}
	return strings.Join(words, " ")
}

func (n Namespaces) without(m Mechanism) Namespaces {
	for _, f := range n.fields() {
		if f.m == m {
			*f.set = false
		}
	}
	return n
}
