package inside

import (
	"cmp"
	"encoding/binary"
	"io/fs"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"golang.org/x/sys/unix"
)

// opened makes a file of a descriptor that the server has sent, once the kernel has said that it is a regular file or a directory, open as it
// was asked for. The error is an errno.
func opened(fd int, flags int, name string) (f *os.File, dir bool, err error) {
	const access = unix.O_ACCMODE | unix.O_PATH | unix.O_APPEND
	var st unix.Stat_t
	var in unix.Statfs_t
	has, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil {
		err = cmp.Or(unix.Fstat(fd, &st), unix.Fstatfs(fd, &in))
	}
	dir = st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case err != nil:
	case !dir && st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = ErrNotRegular
	case has&access != flags&access:
		err = &ServerError{Problem: "has sent a file that is open for something else"}
	case flags&unix.O_ACCMODE != unix.O_RDONLY && regularfile.OfTheKernel(int64(in.Type)):
		err = unix.EACCES
	default:
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, has&^unix.O_NONBLOCK)
	}
	if err != nil {
		unix.Close(fd)
		return nil, false, err
	}
	return os.NewFile(uintptr(fd), name), dir, nil
}

// looked returns what the kernel says of a descriptor, and closes it.
func looked(fd int, name string) (fs.FileInfo, error) {
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return f.Stat()
}

// target reads a symbolic link by its O_PATH descriptor, and closes that.
func target(fd int) (string, error) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", unix.EINVAL
	}
	var buf [maxName]byte
	n, err := unix.Readlinkat(fd, "", buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// entries reads up to most of an open directory's entries (getdents64(2)).
func entries(dir *os.File, most int) (list []dirent, err error) {
	raw, err := dir.SyscallConn()
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 64<<10)
	for len(list) <= most {
		n := 0
		if cerr := raw.Control(func(fd uintptr) {
			for n, err = unix.Getdents(int(fd), buf); err == unix.EINTR; {
				n, err = unix.Getdents(int(fd), buf)
			}
		}); cerr != nil {
			return nil, cerr
		}
		if err != nil || n <= 0 {
			return list, err
		}
		for b := buf[:n]; len(b) > 19; {
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size < 20 || size > len(b) {
				return nil, unix.EIO
			}
			name, _, _ := strings.Cut(string(b[19:size]), "\x00")
			kind, known := kinds[b[18]]
			if b = b[size:]; name != "." && name != ".." {
				list = append(list, dirent{name, kind, !known})
			}
		}
	}
	return nil, unix.EFBIG
}

var kinds = map[byte]fs.FileMode{
	unix.DT_REG: 0, unix.DT_DIR: fs.ModeDir, unix.DT_LNK: fs.ModeSymlink, unix.DT_FIFO: fs.ModeNamedPipe, unix.DT_SOCK: fs.ModeSocket,
	unix.DT_CHR: fs.ModeDevice | fs.ModeCharDevice, unix.DT_BLK: fs.ModeDevice,
}
