//go:build unix

package resolve

import (
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// OwnedByRootAlone reports whether a file, or the link itself, is root's and the
// harness is not root: no tool of the harness's can have made it.
func OwnedByRootAlone(p string) bool {
	info, err := os.Lstat(p)
	if err != nil || os.Geteuid() == 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}

// OwnedBelow reports whether p and every directory on the way to it from dir, which all can
// write to, is the user's or root's, and no other can write there: in dir its sticky bit
// keeps others from renaming what is not theirs (inode(7), S_ISVTX).
func OwnedBelow(dir, p string) bool {
	if p == dir || !pathrule.Within(p, dir) {
		return false
	}
	if info, err := os.Stat(dir); err != nil || info.Mode()&os.ModeSticky == 0 {
		return false
	}
	for ; p != dir; p = path.Dir(p) {
		info, err := os.Lstat(p)
		if err != nil {
			return false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() || info.Mode()&os.ModeSymlink == 0 && info.Mode().Perm()&0o022 != 0 {
			return false
		}
	}
	return true
}

// ownBelow returns the nearest directory around p below which every directory on the way to p, and p, is the user's, who may
// do anything in it. It is p where p is not.
func ownBelow(p string) string {
	for p != "/" {
		info, err := os.Lstat(p)
		if err != nil || info.Mode().Perm()&0o700 != 0o700 {
			break
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			break
		}
		p = path.Dir(p)
	}
	return p
}

// exposed says why dir, which is canonical, is not this user's alone: it belongs to another, or others can write to it, or
// can put another directory in its place.
func exposed(dir string) (problem, remedy string) {
	for at := dir; ; at = path.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return "cannot be looked up", "name a directory that the harness can reach"
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		switch mode := info.Mode(); {
		case !ok, at == dir && int(st.Uid) != os.Geteuid():
			return "belongs to another user", "name a directory of the harness's user"
		case at == dir && mode.Perm()&0o022 != 0:
			return "can be written by others", "chmod go-w " + at
		case at != dir && mode.Perm()&0o002 != 0 && mode&os.ModeSticky == 0:
			return "lies in " + at + ", in which others can rename what is there", "name a directory elsewhere, or chmod o-w " + at
		}
		if at == "/" {
			return "", ""
		}
	}
}

// Foreign returns the entries to be written in which a root without capabilities, as a tool of root's is, can write nothing: they
// belong to another user, and neither a group of the harness nor all others may write to them.
func Foreign(l Tree) []Owned {
	if os.Geteuid() != 0 {
		return nil
	}
	var list []Owned
	for _, e := range l.Entries {
		if e.Kind != pathrule.Write || pathrule.Within(e.Path, "/dev") {
			continue
		}
		info, err := os.Lstat(e.Path)
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && foreign(st.Uid, st.Gid, info.Mode().Perm()) {
			list = append(list, Owned{e.Path, st.Uid, st.Gid})
		}
	}
	return list
}

func foreign(uid, gid uint32, mode os.FileMode) bool {
	groups, _ := os.Getgroups()
	return uid != 0 && mode&0o002 == 0 && (mode&0o020 == 0 || int(gid) != os.Getegid() && !slices.Contains(groups, int(gid)))
}
