package stage

import (
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// dropCapabilities empties the sets, but for what is kept. The bounding set has to
// go first: dropping from it needs CAP_SETPCAP (capabilities(7)).
func (c *compiler) dropCapabilities(a plan.DropCapabilities) {
	if a.Keep == 0 {
		c.call(wire.OpBounding)
	}
	for n := range 64 {
		if a.Keep != 0 && a.Keep>>n&1 == 0 {
			c.call(unix.SYS_PRCTL, imm(unix.PR_CAPBSET_DROP), imm(n)).Ignore = pastOrRefused
		}
	}
	c.call(unix.SYS_PRCTL, imm(unix.PR_CAP_AMBIENT), imm(unix.PR_CAP_AMBIENT_CLEAR_ALL)).Ignore[0] = uint16(unix.EINVAL)
	held := a.Keep
	if a.KeepPtrace {
		held |= 1 << unix.CAP_SYS_PTRACE
	}
	c.capset(held, a.Keep)
}

// keepCapabilities makes capabilities ambient, so that execve leaves them.
func (c *compiler) keepCapabilities(a plan.KeepCapabilities) {
	if !a.All {
		c.capset(a.Mask, a.Mask)
	}
	for n := range 64 {
		if a.All || a.Mask>>n&1 != 0 {
			c.call(unix.SYS_PRCTL, imm(unix.PR_CAP_AMBIENT), imm(unix.PR_CAP_AMBIENT_RAISE), imm(n)).Ignore = pastOrRefused
		}
	}
}

// pastOrRefused are what a capability is answered with that is past the kernel's
// last, or not the process's to change.
var pastOrRefused = [3]uint16{uint16(unix.EINVAL), uint16(unix.EPERM)}

// capset sets the calling thread's permitted and effective capabilities, and the
// inheritable ones.
func (c *compiler) capset(held, inheritable uint64) {
	type header struct {
		version uint32
		_       int32 // pid
	}
	type sets struct{ effective, permitted, inheritable uint32 }
	data := [2]sets{
		{uint32(held), uint32(held), uint32(inheritable)},
		{uint32(held >> 32), uint32(held >> 32), uint32(inheritable >> 32)},
	}
	c.call(unix.SYS_CAPSET, structure(c, header{version: unix.LINUX_CAPABILITY_VERSION_3}), structure(c, data))
}

// joinKeyring leaves the harness's session keyring.
func (c *compiler) joinKeyring(a plan.JoinKeyring) {
	op := c.call(unix.SYS_KEYCTL, imm(unix.KEYCTL_JOIN_SESSION_KEYRING), imm(0))
	if op.Ignore[0] = uint16(unix.ENOSYS); a.Spare {
		op.Ignore[1] = uint16(unix.EDQUOT)
	}
}
