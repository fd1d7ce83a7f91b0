package supervisor

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// indexNaming is an index of version 2 with files of these names.
func indexNaming(names ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(names)))
	for _, n := range names {
		e := make([]byte, 62)
		binary.BigEndian.PutUint32(e[24:], 0o100644)
		binary.BigEndian.PutUint16(e[60:], uint16(len(n)))
		e = append(e, n...)
		b = append(b, append(e, make([]byte, 8-len(e)%8)...)...)
	}
	return append(b, make([]byte, 20)...)
}

// putIndex makes indexes that are judged for a while, one after another, and ends when one is not what was judged.
func putIndex() error {
	defer os.WriteFile("stop", nil, 0o644)
	names := make([]string, 20000)
	for i := range names {
		names[i] = fmt.Sprintf("n%08d", i)
	}
	good := indexNaming(names...)
	for range tries / 100 {
		if os.WriteFile(".git/index.x", good, 0o644) != nil || os.Rename(".git/index.x", ".git/index") != nil {
			continue
		}
		if st, err := os.Stat(".git/index"); err == nil && st.Size() != int64(len(good)) {
			return fmt.Errorf("UNEXPECTED: the index has %d bytes", st.Size())
		}
	}
	return nil
}

// bendIndex is the other sandbox's: it puts another file in its place, gives it a second name, or opens it by a descriptor, while it is judged.
func bendIndex(how string) error {
	evil := indexNaming(".git/hooks/post-checkout")
	var own, index unix.Stat_t
	for unix.Access("stop", unix.F_OK) != nil {
		open, by := "e", -1
		switch how {
		case "replace":
			os.WriteFile("e", evil, 0o644)
			os.Rename("e", ".git/index.x")
			continue
		case "link":
			os.Remove("e")
			if os.Link(".git/index.x", "e") != nil {
				continue
			}
		case "descriptor":
			fd, err := unix.Open(".git/index.x", unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				continue
			}
			open, by = fmt.Sprintf("/proc/self/fd/%d", fd), fd
		}
		fd, err := unix.Open(open, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		unix.Close(by)
		if err != nil {
			continue
		}
		if unix.Fstat(fd, &own) == nil && unix.Lstat(".git/index", &index) == nil && own.Ino == index.Ino {
			return fmt.Errorf("UNEXPECTED: the index is open for writing")
		}
		unix.Close(fd)
	}
	return nil
}
