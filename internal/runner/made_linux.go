package runner

import (
	"os"

	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"golang.org/x/sys/unix"
)

// made returns the file of the record for a command or session of s; nil: it has none.
func (s *Sandbox) made() *os.File {
	p := s.Policy.Files.Protect
	if s.Made == nil || s.Plan.SupervisorRules() == "" || p.Off || p.Everywhere {
		return nil
	}
	s.Made.once.Do(func() {
		const noExec = 8 // MFD_NOEXEC_SEAL, Linux 6.3
		fd, err := unix.MemfdCreate("holdfast made", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|noExec)
		if err == unix.EINVAL {
			fd, err = unix.MemfdCreate("holdfast made", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		}
		if err != nil {
			return
		}
		f := os.NewFile(uintptr(fd), "record of what tools have made")
		if f.Truncate(int64(supervisor.MadeBytes)) != nil {
			f.Close()
			return
		}
		unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
		s.Made.file = f
	})
	return s.Made.file
}
