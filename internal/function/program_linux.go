package function

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Program returns a copy of this program's file in memory that can be executed, and neither changed nor made one that cannot be executed. The kernel's name for
// the file, /proc/self/exe, is that which runs, whatever lies at its path by now. Landlock lets a file be executed that lies on no mount of
// any tree (is_nouser_or_private of security/landlock/fs.c).
func Program() (*os.File, error) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("sandbox: this program's file: %w", err)
	}
	defer exe.Close()
	const execSeal = 0x20 // F_SEAL_EXEC, Linux 6.3: the mode's x bits cannot be changed
	f, err := create("holdfast function", unix.MFD_EXEC)
	if err != nil {
		return nil, fmt.Errorf("sandbox: a copy of this program's file: %w", err)
	}
	if _, err = io.Copy(f, exe); err == nil {
		if _, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, sealed|execSeal); err == unix.EINVAL {
			_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, sealed)
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("sandbox: a copy of this program's file: %w", err)
	}
	return f, nil
}
