package landlock

import "encoding/binary"

// The numbers that a caller of the raw system calls needs (include/uapi/linux/landlock.h).
const (
	// RulePathBeneath is landlock_add_rule(2)'s rule type for [PathBeneathAttr].
	RulePathBeneath = 1
	// RuleNetPort is landlock_add_rule(2)'s rule type for [NetPortAttr].
	RuleNetPort = 2
)

// Attr returns r's struct landlock_ruleset_attr for landlock_create_ruleset(2), in this machine's byte order: 8 bytes, or 16
// with network rights (ABI 4), or 24 with scopes (ABI 6). It is never longer than r needs, so a kernel that knows r's
// rights knows its size. It does no checks: give it what [Downgrade] returned.
func (r Ruleset) Attr() []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(r.HandledFS()))
	if r.HandledNet() != 0 || r.Scoped() != 0 {
		b = binary.NativeEndian.AppendUint64(b, uint64(r.HandledNet()))
	}
	if r.Scoped() != 0 {
		b = binary.NativeEndian.AppendUint64(b, uint64(r.Scoped()))
	}
	return b
}

// PathBeneathAttr returns a struct landlock_path_beneath_attr, which is packed: 8 bytes of
// rights and 4 of descriptor. The kernel refuses rights that the ruleset does not handle and,
// on a file, those of directories (EINVAL), and no rights at all (ENOMSG).
func PathBeneathAttr(access AccessFS, fd int32) [12]byte {
	var b [12]byte
	binary.NativeEndian.PutUint64(b[:8], uint64(access))
	binary.NativeEndian.PutUint32(b[8:], uint32(fd))
	return b
}

// NetPortAttr returns a struct landlock_net_port_attr: 8 bytes of rights and 8 of port in host order.
func NetPortAttr(access AccessNet, port uint16) [16]byte {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:8], uint64(access))
	binary.NativeEndian.PutUint64(b[8:], uint64(port))
	return b
}
