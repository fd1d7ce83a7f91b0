package stage

import (
	"fmt"
	"path"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// lower appends the system calls of one action. It is one switch in five parts: what a process gives up and is held by, the
// mounts of a root, the entries of an explicit root, what such a root asks for beside it, the network.
func (c *compiler) lower(action plan.Action) error {
	switch a := action.(type) {
	case plan.MapIDs:
		c.mapUser(a)
	case plan.NestUser:
		c.nestUser(a)
	case plan.OpenProc:
		c.save(unix.SYS_OPENAT, wire.RegProc, imm(atCwd), c.str("/proc"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	case plan.OpenRoot:
		c.save(unix.SYS_OPENAT, wire.RegOldRoot, imm(atCwd), c.str("/"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	case plan.Loopback:
		return c.loopback(a)
	case plan.JoinKeyring:
		c.joinKeyring(a)
	case plan.SetNoNewPrivs:
		c.call(unix.SYS_PRCTL, imm(unix.PR_SET_NO_NEW_PRIVS), imm(1))
		c.call(wire.OpNoNewPrivs).Probe = CheckNoNewPrivs + 1
	case plan.DropCapabilities:
		c.dropCapabilities(a)
	case plan.DropLast:
		c.capset(0, 0)
	case plan.Undumpable:
		c.call(unix.SYS_PRCTL, imm(unix.PR_SET_DUMPABLE), imm(0))
	case plan.RestrictFiles:
		return c.landlock(a.Ruleset, a.Follow)
	case plan.CheckRoot:
		c.checkRoot()
	case plan.Witness:
		c.call(wire.OpWitness)
	case plan.CheckSignal:
		if c.process == wire.InInit {
			c.call(wire.OpSignalWitness).Probe = CheckSignal + 1
			break
		}
		c.call(wire.OpSignalInit).Probe = CheckSignal + 1
	case plan.CheckKeyring:
		c.save(unix.SYS_KEYCTL, wire.RegKeyring, imm(unix.KEYCTL_GET_KEYRING_ID), imm(unix.KEY_SPEC_SESSION_KEYRING), imm(0))
		c.last().Probe = probeIgnored + 1
	case plan.SetLimits:
		c.limits(a.Settings)
	case plan.Chdir:
		c.call(wire.OpCwd)
	case plan.OwnNull:
		c.call(wire.OpNull)
	case plan.RestoreSignals:
		c.call(wire.OpSignals)
	case plan.LoadFilter:
		c.filter(a.Program.Bytes(), 0)
	case plan.LoadKeeperFilter:
		return c.keeperFilter(a.Program.Bytes())
	case plan.LoadSupervisor:
		return c.supervisor(a)
	default:
		return c.lowerMount(action)
	}
	return nil
}

// lowerMount lowers the mounts of a root that is made of the policy's files.
func (c *compiler) lowerMount(action plan.Action) error {
	switch a := action.(type) {
	case plan.PrivateMounts:
		c.call(unix.SYS_MOUNT, imm(0), c.str("/"), imm(0), imm(unix.MS_REC|unix.MS_PRIVATE), imm(0))
	case plan.NewRoot:
		c.newRoot(a)
	case plan.KeepRoot:
		c.keepRoot()
	case plan.UnnamedTree:
		c.unnamedTree(a)
	case plan.Scratch:
		c.scratch(a)
	case plan.MakeLink:
		return c.makeLink(a)
	case plan.MakeFile:
		return c.makeFile(a)
	case plan.Bind:
		c.bind(a)
	case plan.Private:
		c.private(a)
	case plan.Hide:
		c.hide(a)
	case plan.Cover:
		c.coverFile(a)
	case plan.Overlay:
		c.overlay(a)
	case plan.SharedOverlay:
		c.sharedOverlay(a)
	case plan.ProbeOverlay:
		c.probeOverlay()
	case plan.Proc:
		c.proc(a)
	case plan.PTYs:
		c.ptys()
	case plan.Queues:
		c.queues()
	case plan.Pivot:
		c.pivot(a)
	case plan.SealRoot:
		c.setattr(wire.RegRoot, "", unix.MOUNT_ATTR_RDONLY, 0)
	default:
		return c.lowerLayout(action)
	}
	return nil
}

// lowerLayout lowers what only explicit layouts have. What lies where is known
// when it runs, not here: the tree that is being built may hold links.
func (c *compiler) lowerLayout(action plan.Action) error {
	switch a := action.(type) {
	case plan.PutBind:
		c.putBind(a)
		c.mounted[path.Clean(a.At)] = true
	case plan.PutTmpfs:
		c.putTmpfs(a)
		c.mounted[path.Clean(a.At)] = false
	case plan.PutDir:
		c.find(wire.MakeDir, a.At, a.Mode, a.Mode, false)
		c.close(regDest)
	case plan.PutFile:
		c.find(wire.MakeWrite, a.At, a.Mode, a.Mode, false)
		c.writeAll(a.Data)
		c.writeGiven(a.Given)
		c.close(regDest)
	case plan.PutData:
		c.putData(a)
	case plan.PutLink:
		c.call(wire.OpPlace, reg(wire.RegRoot), structure(c, wire.Place{
			Path: c.off(rel(a.At)), Parents: 0o755, Make: wire.MakeLink, Target: c.off(a.Target)}))
	case plan.PutMode:
		c.find(wire.MakeNothing, a.At, 0, 0, false)
		c.call(wire.OpMode, reg(regDest), imm(a.Mode))
		c.close(regDest)
	case plan.PutReadOnly:
		c.find(wire.MakeNothing, a.At, 0, 0, false)
		c.setattr(regDest, "", unix.MOUNT_ATTR_RDONLY, 0)
		c.close(regDest)
	case plan.PutProc:
		c.putProc(a)
	case plan.PutDev:
		c.putDev(a)
	case plan.PutQueue:
		c.filesystem("mqueue", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, regTree)
		c.put(wire.MakeDir, a.At, 0o755, 0o755, false)
	case plan.PutOverlay:
		c.mounted[path.Clean(a.At)] = a.Upper != ""
		c.putOverlay(a)
	default:
		return c.lowerAround(action)
	}
	return nil
}

// lowerAround lowers what a layout's policy asks for beside the root.
func (c *compiler) lowerAround(action plan.Action) error {
	switch a := action.(type) {
	case plan.Floor:
		c.floor()
	case plan.ClearUmask:
		c.save(unix.SYS_UMASK, regUmask, imm(0))
	case plan.RestoreUmask:
		c.call(unix.SYS_UMASK, reg(regUmask))
	case plan.OwnProc:
		c.filesystem("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, wire.RegProc)
		c.quotas(a.Quotas)
	case plan.Hostname:
		c.call(unix.SYS_SETHOSTNAME, c.str(a.Name), imm(len(a.Name)))
	case plan.BecomeIDs:
		c.call(unix.SYS_PRCTL, imm(unix.PR_SET_KEEPCAPS), imm(1))
		c.call(unix.SYS_SETRESGID, imm(a.GID), imm(a.GID), imm(a.GID))
		c.call(unix.SYS_SETRESUID, imm(a.UID), imm(a.UID), imm(a.UID))
		c.capset(^uint64(0), 0) // permitted is kept, effective is not (capabilities(7))
	case plan.EnterUser:
		c.call(unix.SYS_SETNS, reg(wire.RegGiven+a.Given), imm(unix.CLONE_NEWUSER))
	case plan.ForbidUsers:
		c.save(unix.SYS_OPENAT, wire.RegFree, imm(atCwd), c.str("/proc/sys/user/max_user_namespaces"), imm(unix.O_WRONLY|unix.O_CLOEXEC))
		c.call(unix.SYS_WRITE, reg(wire.RegFree), c.str("1"), imm(1))
		c.close(wire.RegFree)
	case plan.CheckNoUsers:
		c.call(wire.OpNoUsers)
	case plan.KeepCapabilities:
		c.keepCapabilities(a)
	case plan.Lock:
		c.lockFile(a.Path)
	case plan.Gate:
		which := wire.GateBorn
		if a.Built {
			which = wire.GateBuilt
		}
		c.call(wire.OpGate, imm(which))
	default:
		return c.lowerNet(action)
	}
	return nil
}

// lowerNet lowers what makes descriptors inside the network namespace and passes
// them up: listeners, a device, the dialer.
func (c *compiler) lowerNet(action plan.Action) error {
	switch a := action.(type) {
	case plan.Listen:
		if err := c.takeSlot(a.Slot); err != nil {
			return err
		}
		if a.Network == "unix" {
			return c.listenAtPath(a)
		}
		return c.listenAtPort(a)
	case plan.Tun:
		if err := c.takeSlot(a.Slot); err != nil {
			return err
		}
		return c.tun(a)
	case plan.ProbeTun:
		c.probeTun()
	case plan.Dialer:
		if err := c.takeSlot(a.Slot); err != nil {
			return err
		}
		return c.dialer(a)
	default:
		return fmt.Errorf("no lowering for %T", action)
	}
	return nil
}

// processOf returns wire's number of a process.
func processOf(p plan.Place) int {
	return [...]int{plan.Stage: wire.InStage, plan.Init: wire.InInit, plan.Tool: wire.InTool}[p]
}
