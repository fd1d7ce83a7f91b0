package resolve

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Terminals returns the directory of the host's terminals, and where the device is that makes terminals in it, if that is elsewhere; nil if this host has not both.
func Terminals() []string {
	const devpts = 0x1cd1 // DEVPTS_SUPER_MAGIC
	var fs unix.Statfs_t
	var device unix.Stat_t
	makes, err := filepath.EvalSymlinks("/dev/ptmx")
	if err != nil || unix.Statfs(PTYs, &fs) != nil || fs.Type != devpts || unix.Stat(makes, &device) != nil || device.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil
	}
	if filepath.Dir(makes) == PTYs {
		return []string{PTYs}
	}
	return []string{PTYs, makes}
}
