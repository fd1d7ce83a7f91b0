package stage

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// overlay mounts overlayfs with its upper layer in the scratch. Layers are
// given as paths: descriptors are accepted only since Linux 6.13. They are
// resolved in the old root, which init still has as its root directory here.
func (c *compiler) overlay(a plan.Overlay) {
	c.slot(a.Slot, 0o700)
	c.slot(a.Slot+"/up", 0o755)
	c.slot(a.Slot+"/work", 0o700)
	c.call(unix.SYS_FCHDIR, reg(wire.RegScratch))
	c.filesystem("overlay", attrsWrite, regTree,
		[2]string{"lowerdir", escapeLayer(a.Lower)}, [2]string{"upperdir", a.Slot + "/up"}, [2]string{"workdir", a.Slot + "/work"},
		[2]string{"userxattr", ""})
	c.point(a.At, true)
	c.land(regTree)
	c.close(regTree)
	c.covers[a.At] = true
}

// probeOverlay finds out whether one can be mounted.
func (c *compiler) probeOverlay() {
	c.slot("lower", 0o755)
	c.overlay(plan.Overlay{Lower: "lower", At: "/overlay", Slot: "probe"})
	c.forgiveOverlay()
}

// forgiveOverlay makes the overlay just lowered a probe: the call that creates
// it records its errno, and those that need its mount may fail.
func (c *compiler) forgiveOverlay() {
	list := c.t.ops[c.place]
	failed := false
	for i := range list {
		op := &list[i]
		if op.Step != c.step {
			continue
		}
		switch int(op.Nr) {
		case unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_MOVE_MOUNT, unix.SYS_CLOSE:
			op.Probe = probeIgnored + 1
			if op.Nr == unix.SYS_FSMOUNT {
				op.Probe = overlaySlot + 1
				failed = true
			}
		}
	}
	if !failed {
		panic("stage: an overlay without fsmount")
	}
}

// probeIgnored is the self-check slot of calls whose outcome does not matter.
const probeIgnored = wire.MaxSelfChecks - 1

// escapeLayer escapes what overlayfs takes for separators.
func escapeLayer(p string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace(p)
}
