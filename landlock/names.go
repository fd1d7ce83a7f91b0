package landlock

import (
	"fmt"
	"math/bits"
	"strings"
)

// alphabet names the bits of a set in order, and groups of them that parse but are never printed.
type alphabet struct {
	set    string
	names  []string
	groups map[string]uint64
}

var (
	fsNames = alphabet{"file system right", []string{
		"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file", "make_char", "make_dir", "make_reg",
		"make_sock", "make_fifo", "make_block", "make_sym", "refer", "truncate", "ioctl_dev", "resolve_unix",
	}, map[string]uint64{
		"read": uint64(FSRead), "read_execute": uint64(FSReadExecute), "write": uint64(FSWrite),
		"read_write": uint64(FSReadWrite), "make_device": uint64(FSMakeDevice), "all": uint64(FSAll),
	}}
	netNames = alphabet{"network right", []string{"bind_tcp", "connect_tcp", "bind_udp", "connect_send_udp"},
		map[string]uint64{"all": uint64(NetAll)}}
	scopeNames = alphabet{"scope", []string{"abstract_unix_socket", "signal"},
		map[string]uint64{"all": uint64(ScopeAll)}}
	flagNames = alphabet{"flag", []string{"log_same_exec_off", "log_new_exec_on", "log_subdomains_off", "tsync", "no_new_privs"},
		map[string]uint64{"all": uint64(FlagsAll)}}
)

// format prints set as names joined by "|", the empty set as "none", and bits without a name as one hexadecimal number.
func (al alphabet) format(set uint64) string {
	if set == 0 {
		return "none"
	}
	var parts []string
	for rest := set & al.known(); rest != 0; rest &= rest - 1 {
		parts = append(parts, al.names[bits.TrailingZeros64(rest)])
	}
	if unknown := set &^ al.known(); unknown != 0 {
		parts = append(parts, fmt.Sprintf("%#x", unknown))
	}
	return strings.Join(parts, "|")
}

// parse reads what format prints, group names too. It knows no numbers: a right without a name has no meaning here.
func (al alphabet) parse(text string) (uint64, error) {
	if text == "none" {
		return 0, nil
	}
	var set uint64
next:
	for part := range strings.SplitSeq(text, "|") {
		part = strings.TrimSpace(part)
		if group, ok := al.groups[part]; ok {
			set |= group
			continue
		}
		for i, name := range al.names {
			if part == name {
				set |= 1 << i
				continue next
			}
		}
		return 0, &NameError{Set: al.set, Name: part}
	}
	return set, nil
}

func (al alphabet) known() uint64 { return 1<<len(al.names) - 1 }

// text is format for a machine to read back: it refuses bits that parse could not give.
func (al alphabet) text(set uint64) ([]byte, error) {
	if unknown := set &^ al.known(); unknown != 0 {
		return nil, &NameError{Set: al.set, Name: fmt.Sprintf("%#x", unknown)}
	}
	return []byte(al.format(set)), nil
}

// String prints the rights by name: "execute|read_file", or "none".
func (a AccessFS) String() string { return fsNames.format(uint64(a)) }

// MarshalText is String, but an unknown bit is a [*NameError].
func (a AccessFS) MarshalText() ([]byte, error) { return fsNames.text(uint64(a)) }

// UnmarshalText is [ParseAccessFS].
func (a *AccessFS) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAccessFS(string(text))
	return err
}

// ParseAccessFS reads names joined by "|": the rights as String prints them, the groups read, read_execute, write,
// read_write, make_device and all, and none. Spaces around a name are ignored. The error is a [*NameError].
func ParseAccessFS(text string) (AccessFS, error) {
	set, err := fsNames.parse(text)
	return AccessFS(set), err
}

// String prints the rights by name: "bind_tcp|connect_tcp", or "none".
func (a AccessNet) String() string { return netNames.format(uint64(a)) }

// MarshalText is String, but an unknown bit is a [*NameError].
func (a AccessNet) MarshalText() ([]byte, error) { return netNames.text(uint64(a)) }

// UnmarshalText is [ParseAccessNet].
func (a *AccessNet) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAccessNet(string(text))
	return err
}

// ParseAccessNet reads network rights as [AccessNet.String] prints them, or all. The error is a [*NameError].
func ParseAccessNet(text string) (AccessNet, error) {
	set, err := netNames.parse(text)
	return AccessNet(set), err
}

// String prints the scopes by name: "abstract_unix_socket|signal", or "none".
func (s Scope) String() string { return scopeNames.format(uint64(s)) }

// MarshalText is String, but an unknown bit is a [*NameError].
func (s Scope) MarshalText() ([]byte, error) { return scopeNames.text(uint64(s)) }

// UnmarshalText is [ParseScope].
func (s *Scope) UnmarshalText(text []byte) (err error) {
	*s, err = ParseScope(string(text))
	return err
}

// ParseScope reads scopes as [Scope.String] prints them, or all. The error is a [*NameError].
func ParseScope(text string) (Scope, error) {
	set, err := scopeNames.parse(text)
	return Scope(set), err
}

// String prints the flags by name, or "none".
func (f Flags) String() string { return flagNames.format(uint64(f)) }
