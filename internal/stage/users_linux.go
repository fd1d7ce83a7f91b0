package stage

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// mapUser maps the stage's user in the namespace that init was cloned into.
func (c *compiler) mapUser(a plan.MapIDs) {
	to := plan.IDs{}
	if a.To != nil {
		to = *a.To
	}
	c.mapIDs(imm(atCwd), "/proc/", to, plan.IDs(c.id))
}

// nestUser makes another user namespace and maps a user of the one around it there.
func (c *compiler) nestUser(a plan.NestUser) {
	c.call(unix.SYS_UNSHARE, imm(unix.CLONE_NEWUSER))
	from, to := plan.IDs{}, plan.IDs(c.id)
	if a.From != nil {
		from = *a.From
	}
	if a.To != nil {
		to = *a.To
	}
	c.mapIDs(reg(wire.RegProc), "", to, from)
}

// mapIDs writes the maps of the calling process's new user namespace. One line
// that maps one's own id is all that an unprivileged process may write, and it
// has to give up setgroups first (user_namespaces(7)). What is given up stays
// given up in nested namespaces.
func (c *compiler) mapIDs(base arg, dir string, to, from plan.IDs) {
	files := [][2]string{{"uid_map", fmt.Sprintf("%d %d 1", to.UID, from.UID)}, {"gid_map", fmt.Sprintf("%d %d 1", to.GID, from.GID)}}
	if dir != "" {
		files = append([][2]string{{"setgroups", "deny"}}, files...)
	}
	for _, f := range files {
		c.save(unix.SYS_OPENAT, wire.RegFree, base, c.str(dir+"self/"+f[0]), imm(unix.O_WRONLY|unix.O_CLOEXEC))
		c.call(unix.SYS_WRITE, reg(wire.RegFree), c.str(f[1]), imm(len(f[1])))
		c.close(wire.RegFree)
	}
}
