package rootfs

import (
	"fmt"
	"slices"
	"strings"
)

// A Capability is one of capabilities(7), by its number.
type Capability uint8

// capabilityNames are the names without "CAP_", by number (linux/capability.h).
var capabilityNames = []string{
	"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid",
	"setpcap", "linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner",
	"sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice",
	"sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap",
	"mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf",
	"checkpoint_restore",
}

// ParseCapability reads a name such as "CAP_NET_ADMIN" or "net_admin". Its error
// is a [*FieldError].
func ParseCapability(name string) (Capability, error) {
	short, _ := strings.CutPrefix(strings.ToLower(name), "cap_")
	if i := slices.Index(capabilityNames, short); i >= 0 {
		return Capability(i), nil
	}
	return 0, &FieldError{Field: "Privileges.Capabilities", Value: name, Problem: "no such capability"}
}

// String returns the name, such as "CAP_NET_ADMIN", or "CAP_41" for one that
// this package has no name for.
func (c Capability) String() string {
	if int(c) < len(capabilityNames) {
		return "CAP_" + strings.ToUpper(capabilityNames[c])
	}
	return fmt.Sprintf("CAP_%d", uint8(c))
}

// Mask returns the capabilities as a set of bits.
func (p Privileges) Mask() (mask uint64) {
	for _, c := range p.Capabilities {
		mask |= 1 << c
	}
	return mask
}
